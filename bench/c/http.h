/* What the load generators share: time, files, sockets, and the decoding of an HTTP/1.1 response. */
#ifndef BENCH_HTTP_H
#define BENCH_HTTP_H
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static inline long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static inline void die(const char *what) {
    perror(what);
    exit(1);
}

static inline double cpu_seconds(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static inline char *read_file(const char *path, size_t *length) {
    FILE *f = fopen(path, "rb");
    if (!f) die(path);
    fseek(f, 0, SEEK_END);
    *length = ftell(f);
    rewind(f);
    char *bytes = malloc(*length + 1);
    if (fread(bytes, 1, *length, f) != *length) die(path);
    bytes[*length] = 0;
    fclose(f);
    return bytes;
}

static inline int connect_to(int port, int receive_buffer) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (receive_buffer) setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    if (connect(fd, (struct sockaddr *)&address, sizeof address)) die("connect");
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

static inline void send_all(int fd, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t n = send(fd, bytes, length, MSG_NOSIGNAL);
        if (n < 0 && errno == EAGAIN) continue;
        if (n <= 0) die("send");
        bytes += n, length -= n;
    }
}

/* The value of a response header within [head, head + length), or NULL. `name` as "content-length:". */
static inline const char *find_header(const char *head, size_t length, const char *name) {
    size_t size = strlen(name);
    for (const char *at = head; (at = memchr(at, '\n', head + length - at)); ) {
        at++;
        if ((size_t)(head + length - at) < size) return NULL;
        if (!strncasecmp(at, name, size)) return at + size + (at[size] == ' ');
    }
    return NULL;
}

static inline int compare_longs(const void *a, const void *b) {
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

static inline double percentile_us(long *sorted, long count, double share) {
    return count ? sorted[(long)((count - 1) * share)] / 1e3 : 0;
}
#endif
