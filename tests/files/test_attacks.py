"""The attacks on files of the security paper, each by its name."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from sandbox_agent.errors import ClientError, Forbidden, InvalidParams, NotFound
from sandbox_agent.files import FileService
from sandbox_agent.files.failures import explained
from sandbox_agent.files.paths import Roots
from sandbox_agent.files.reading import open_regular
from sandbox_agent.files.walk import locate
from support.limits import file_limits
from support.tars import archive, file, snapshot, stream

Attack = Callable[[FileService, str], Awaitable[object]]


async def _read(service: FileService, path: str) -> object:
    return await service.read_bytes(path)


async def _write(service: FileService, path: str) -> object:
    return await service.write_bytes(path, b"owned")


async def _stat(service: FileService, path: str) -> object:
    return await service.stat(path)


async def _list(service: FileService, path: str) -> object:
    return await service.list_entries(path)


async def _mkdir(service: FileService, path: str) -> object:
    return await service.mkdir(path)


async def _delete(service: FileService, path: str) -> object:
    return await service.delete(path, recursive=True)


async def _move_out(service: FileService, path: str) -> object:
    return await service.move("mine", path, overwrite=True)


async def _move_in(service: FileService, path: str) -> object:
    return await service.move(path, "stolen", overwrite=True)


async def _upload(service: FileService, path: str) -> object:
    return await service.upload_batch(path, stream(archive(file("owned"))))


EVERY: list[Attack] = [_read, _write, _stat, _list, _mkdir, _delete, _move_out, _move_in, _upload]


@pytest.fixture
def before(root: Path, outside: Path) -> dict[str, str | bytes]:
    (root / "mine").write_bytes(b"mine")
    (root / "dir").mkdir()
    (root / "out").symlink_to(outside)
    (root / "out-file").symlink_to(outside / "secret")
    (root / "out-relative").symlink_to("../outside")
    (root / "dir" / "up").symlink_to("..")
    (root / "chain").symlink_to("dir/up/out-relative")
    return snapshot(outside)


@pytest.mark.parametrize(
    "path",
    [
        "../outside/secret",
        "dir/../../outside/secret",
        "dir/up/../outside/secret",
        "out/secret",
        "out-relative/secret",
        "chain/secret",
        "out/../outside/secret",
        "{outside}/secret",
        "{root}/../outside/secret",
        "{root}-sibling",
        "/etc/passwd",
        "/proc/self/environ",
        "/proc/self/root/etc/passwd",
        "/dev/zero",
    ],
)
@pytest.mark.parametrize("attack", EVERY)
async def test_a_path_that_leads_out_is_forbidden(
    confined: FileService,
    root: Path,
    outside: Path,
    before: dict[str, str | bytes],
    attack: Attack,
    path: str,
) -> None:
    with pytest.raises(Forbidden, match="outside the directories"):
        await attack(confined, path.format(root=root, outside=outside))
    assert snapshot(outside) == before
    assert (root / "mine").read_bytes() == b"mine"


@pytest.mark.parametrize("path", ["%2e%2e/outside/secret", "%252e%252e/outside/secret", "..%2foutside%2fsecret"])
async def test_percent_signs_are_letters_here(confined: FileService, before: dict[str, str | bytes], path: str) -> None:
    with pytest.raises(NotFound):
        await confined.read_bytes(path)


@pytest.mark.parametrize(
    "path", ["mine\0.txt", "\ud8c0\udcae", "..\udcc0\udcaf"], ids=["NUL", "surrogates", "overlong"]
)
@pytest.mark.parametrize("attack", EVERY)
async def test_a_name_that_no_file_can_have_is_refused(
    confined: FileService, before: dict[str, str | bytes], attack: Attack, path: str
) -> None:
    with pytest.raises(InvalidParams):
        await attack(confined, path)


@pytest.mark.parametrize("attack", [_read, _write, _stat, _list, _mkdir, _upload])
@pytest.mark.parametrize("link", ["out", "out-file"])
@pytest.mark.promise("P-files-1")
async def test_a_link_that_points_out_is_not_followed(
    confined: FileService, outside: Path, before: dict[str, str | bytes], attack: Attack, link: str
) -> None:
    with pytest.raises(Forbidden):
        await attack(confined, link)
    assert snapshot(outside) == before


@pytest.mark.parametrize("link", ["out", "out-file"])
async def test_deleting_a_link_that_points_out_removes_the_link(
    confined: FileService, root: Path, outside: Path, before: dict[str, str | bytes], link: str
) -> None:
    await confined.delete(link, recursive=True)
    assert not (root / link).is_symlink()
    assert snapshot(outside) == before


async def test_recursive_delete_removes_links_and_never_what_is_behind_them(
    confined: FileService, root: Path, outside: Path, before: dict[str, str | bytes]
) -> None:
    (root / "dir" / "out").symlink_to(outside)
    (root / "dir" / "root").symlink_to(root)
    await confined.delete("dir", recursive=True)
    assert not (root / "dir").exists()
    assert (root / "mine").exists()
    assert snapshot(outside) == before


async def test_moving_a_link_moves_the_link_and_moving_onto_one_replaces_it(
    confined: FileService, root: Path, outside: Path, before: dict[str, str | bytes]
) -> None:
    await confined.move("out", "renamed")
    assert (root / "renamed").readlink() == outside
    await confined.move("mine", "out-file", overwrite=True)
    assert (root / "out-file").read_bytes() == b"mine"
    assert not (root / "out-file").is_symlink()
    assert snapshot(outside) == before


async def test_links_within_the_root_are_followed(
    confined: FileService, root: Path, before: dict[str, str | bytes]
) -> None:
    (root / "alias").symlink_to(root / "mine")
    assert await confined.read_bytes("dir/up/alias") == b"mine"
    await confined.write_bytes("alias", b"new")
    assert (root / "alias").is_symlink()
    assert (root / "mine").read_bytes() == b"new"


async def test_links_in_a_circle_are_refused(confined: FileService, root: Path) -> None:
    (root / "a").symlink_to("b")
    (root / "b").symlink_to("a")
    for attack in (_read, _write, _stat, _list):
        with pytest.raises(InvalidParams, match="too many symbolic links"):
            await attack(confined, "a/x" if attack is _list else "a")


@pytest.mark.parametrize("path", [".", "{root}", "dir/.."])
async def test_a_root_is_neither_deleted_nor_moved_nor_replaced(
    confined: FileService, root: Path, before: dict[str, str | bytes], path: str
) -> None:
    asked = path.format(root=root)
    with pytest.raises(Forbidden, match="root"):
        await confined.delete(asked, recursive=True)
    with pytest.raises(Forbidden, match="root"):
        await confined.move(asked, "elsewhere")
    with pytest.raises(Forbidden, match="root"):
        await confined.move("mine", asked, overwrite=True)
    assert (root / "mine").exists()


async def test_a_directory_that_holds_another_root_is_not_deleted(root: Path) -> None:
    (root / "dir/inner").mkdir(parents=True)
    service = FileService([root, root / "dir/inner"], root, file_limits(), data_dir=None)
    with pytest.raises(Forbidden, match="root"):
        await service.delete("dir", recursive=True)
    assert (root / "dir/inner").is_dir()
    await service.close()


async def test_without_roots_slash_is_not_deleted(free: FileService) -> None:
    with pytest.raises(Forbidden):
        await free.delete("/")


@pytest.mark.parametrize("path", ["/proc/self/environ", "/proc/self/mem", "/proc/kmsg", "/proc/self/fd/0", "/dev/zero"])
async def test_without_roots_devices_and_kernel_files_are_refused(free: FileService, path: str) -> None:
    with pytest.raises(ClientError):
        await free.read_bytes(path)
    with pytest.raises(ClientError):
        await free.write_bytes(path, b"x")


async def test_the_servers_environment_is_forbidden_as_a_kernel_file(free: FileService) -> None:
    with pytest.raises(Forbidden, match="kernel's proc file system"):
        await free.open_for_read("/proc/self/environ")


async def test_a_fifo_is_refused_at_once(confined: FileService, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(Forbidden, match="not a regular file"):
        await confined.open_for_read("pipe")
    with pytest.raises(Forbidden, match="not a regular file"):
        await confined.write_bytes("pipe", b"x")


async def test_a_socket_is_refused(confined: FileService, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)  # a socket's path must be short
    with socket.socket(socket.AF_UNIX) as door:
        door.bind("door")
        with pytest.raises(Forbidden, match="not a regular file"):
            await confined.open_for_read("door")


class Swapper:
    """A thread that exchanges a name between something harmless and a link that leads out."""

    def __init__(self, name: Path, harmless: Callable[[Path], None], outside: Path) -> None:
        self._name = name
        self._harmless = harmless
        self._outside = outside
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._swap)
        self.swaps = 0

    def __enter__(self) -> Swapper:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _swap(self) -> None:
        spare = self._name.with_name("spare")
        parked = self._name.with_name("parked")
        self._harmless(self._name)
        while not self._over.is_set():
            spare.symlink_to(self._outside)
            self._name.rename(parked)
            self._place(spare)
            self._name.unlink()
            self._place(parked)
            self.swaps += 1

    def _place(self, source: Path) -> None:
        while True:
            try:
                source.rename(self._name)
            except OSError:  # a write made the directory anew while it was away
                shutil.rmtree(self._name, ignore_errors=True)
            else:
                return


async def test_a_directory_swapped_for_a_link_between_check_and_use_never_leaks(
    confined: FileService, root: Path, outside: Path
) -> None:
    def harmless(name: Path) -> None:
        name.mkdir()
        (name / "secret").write_bytes(b"harmless")

    before = snapshot(outside)
    seen = set()
    with Swapper(root / "swapped", harmless, outside) as swapper:
        for attempt in range(20_000):
            try:
                seen.add(await confined.read_bytes("swapped/secret"))
                if attempt % 10 == 0:
                    await confined.write_bytes(f"swapped/new-{attempt}", b"x")
            except ClientError as error:
                seen.add(type(error).__name__.encode())
            if attempt > 400 and swapper.swaps > 400 and len(seen) > 1:
                break
    assert b"harmless" in seen
    assert b"SECRET" not in seen
    assert snapshot(outside) == before


def test_a_file_swapped_for_a_link_between_check_and_use_never_leaks(root: Path, outside: Path) -> None:
    roots = Roots([(root, root)])
    seen = set()
    with Swapper(root / "swapped", lambda name: name.touch(), outside / "secret") as swapper:
        for attempt in range(100_000):
            try:
                with explained("swapped"), locate(roots, f"{root}/swapped", follow=False) as spot:
                    fd, _ = open_regular(spot, "swapped")
                    seen.add(os.read(fd, 100))
                    os.close(fd)
            except ClientError as error:
                seen.add(type(error).__name__.encode())
            if attempt > 3000 and swapper.swaps > 3000:
                break
    assert b"" in seen
    assert b"SECRET" not in seen


async def test_a_directory_swapped_during_recursive_delete_never_costs_what_is_outside(
    confined: FileService, root: Path, outside: Path
) -> None:
    before = snapshot(outside)
    (root / "holder").mkdir()

    def harmless(name: Path) -> None:
        name.mkdir()

    with Swapper(root / "holder" / "swapped", harmless, outside):
        for _ in range(200):
            try:
                await confined.delete("holder/swapped/secret", recursive=True)
            except ClientError:
                pass
    assert snapshot(outside) == before
