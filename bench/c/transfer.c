/* One large request or response.
 *
 *   transfer PORT REQUEST_FILE [BODY_FILE]
 *
 * Sends the request, then the body if there is one, and reads the response to its end (by its length, or until the
 * server closes). Prints one JSON line: status, seconds, bytes (of the response's body), cpu_s.
 */
#include "http.h"
#include <signal.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

static void send_file(int fd, const char *path) {
    struct stat info;
    int file = open(path, O_RDONLY);
    if (file < 0 || fstat(file, &info)) die(path);
    for (off_t at = 0; at < info.st_size;)
        if (sendfile(fd, file, &at, info.st_size - at) <= 0) {
            if (errno == EPIPE || errno == ECONNRESET) break; /* refused early: the answer says why */
            die("sendfile");
        }
    close(file);
}

int main(int argc, char **argv) {
    static char in[1 << 20];
    if (argc < 3) return fprintf(stderr, "usage: transfer PORT REQUEST_FILE [BODY_FILE]\n"), 2;
    size_t length, used = 0;
    char *request = read_file(argv[2], &length), *body = NULL;
    signal(SIGPIPE, SIG_IGN);
    int fd = connect_to(atoi(argv[1]), 0);
    long start = now_ns(), got = 0, expected = -1;
    send_all(fd, request, length);
    if (argc > 3) send_file(fd, argv[3]);
    while (!body) {
        ssize_t n = recv(fd, in + used, sizeof in - 1 - used, 0);
        if (n <= 0) die("no answer");
        used += n, in[used] = 0;
        body = strstr(in, "\r\n\r\n");
    }
    body += 4;
    int status = atoi(in + 9);
    const char *said = find_header(in, body - in, "content-length:");
    if (said) expected = strtol(said, NULL, 10);
    got = used - (body - in);
    for (ssize_t n; expected < 0 || got < expected; got += n)
        if ((n = recv(fd, in, sizeof in, 0)) <= 0) break;
    printf("{\"status\":%d,\"seconds\":%.6f,\"bytes\":%ld,\"cpu_s\":%.4f}\n", status, (now_ns() - start) / 1e9, got,
           cpu_seconds());
}
