import type { FsEntry, FsStat, FsUploadResult, FsWriteResult } from "./api.js";
import type { Http } from "./http.js";

export interface FileOptions {
  /** Relative paths start at this session's directory. */
  sessionId?: string;
}

/** Files where the server runs. */
export class Files {
  constructor(private readonly http: Http) {}

  async list(path: string, options: FileOptions = {}): Promise<FsEntry[]> {
    return await this.http.json("GET", "/v1/fs/entries", { query: { path, ...options } });
  }

  async stat(path: string, options: FileOptions = {}): Promise<FsStat> {
    return await this.http.json("GET", "/v1/fs/stat", { query: { path, ...options } });
  }

  /** The file as a response whose body streams; `range` is as in HTTP, such as `bytes=0-99`. */
  async open(path: string, options: FileOptions & { range?: string } = {}): Promise<Response> {
    const { range, ...query } = options;
    const headers = range === undefined ? {} : { range };
    return await this.http.request("GET", "/v1/fs/file", { query: { path, ...query }, headers });
  }

  async read(path: string, options: FileOptions = {}): Promise<Uint8Array> {
    return new Uint8Array(await (await this.open(path, options)).arrayBuffer());
  }

  async readText(path: string, options: FileOptions = {}): Promise<string> {
    return await (await this.open(path, options)).text();
  }

  /** Replaces the file once all bytes have arrived; missing directories are made. */
  async write(path: string, content: string | Uint8Array | Blob, options: FileOptions = {}): Promise<FsWriteResult> {
    return await this.http.json("PUT", "/v1/fs/file", {
      query: { path, ...options },
      body: content as BodyInit,
      headers: { "content-type": "application/octet-stream" },
    });
  }

  async delete(path: string, options: FileOptions & { recursive?: boolean } = {}): Promise<void> {
    await this.http.request("DELETE", "/v1/fs/entry", { query: { path, ...options } });
  }

  async mkdir(path: string, options: FileOptions = {}): Promise<void> {
    await this.http.request("POST", "/v1/fs/mkdir", { query: { path, ...options } });
  }

  async move(from: string, to: string, options: FileOptions & { overwrite?: boolean } = {}): Promise<void> {
    const { overwrite = false, ...query } = options;
    await this.http.request("POST", "/v1/fs/move", {
      query,
      body: JSON.stringify({ from, to, overwrite }),
      headers: { "content-type": "application/json" },
    });
  }

  /** Unpack a tar, plain or gzip, into a directory: all of it or nothing. */
  async upload(path: string, tar: Uint8Array | Blob, options: FileOptions = {}): Promise<FsUploadResult> {
    return await this.http.json("POST", "/v1/fs/upload-batch", {
      query: { path, ...options },
      body: tar as BodyInit,
      headers: { "content-type": "application/x-tar" },
    });
  }
}
