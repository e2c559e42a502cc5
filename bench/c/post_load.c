/* Keep-alive clients that each send one request again and again, waiting for every answer.
 *
 *   post_load PORT SECONDS REQUEST_FILE...      one client per file; the file is the whole HTTP request
 *
 * Prints one JSON line: requests, seconds, p50_us, p99_us, failed (status not 2xx, or an error in the answer), cpu_s.
 */
#include "http.h"

typedef struct {
    int fd;
    char *request, in[65536];
    size_t length, used;
    long sent_at;
} Client;

/* The length of the response that `in` begins with, 0 while it is not whole. */
static size_t response_length(Client *c) {
    c->in[c->used] = 0;
    char *body = strstr(c->in, "\r\n\r\n");
    if (!body) return 0;
    body += 4;
    const char *length = find_header(c->in, body - c->in, "content-length:");
    if (!length) {
        fprintf(stderr, "a response without content-length:\n%s\n", c->in);
        exit(1);
    }
    size_t whole = (body - c->in) + strtoul(length, NULL, 10);
    if (whole >= sizeof c->in) die("response too large");
    return c->used >= whole ? whole : 0;
}

int main(int argc, char **argv) {
    if (argc < 4) return fprintf(stderr, "usage: post_load PORT SECONDS REQUEST_FILE...\n"), 2;
    int port = atoi(argv[1]), count = argc - 3, poll_fd = epoll_create1(0);
    Client *clients = calloc(count, sizeof *clients);
    long room = 1 << 16, done = 0, failed = 0, *delays = malloc(room * sizeof *delays);
    for (int i = 0; i < count; i++) {
        Client *c = &clients[i];
        c->request = read_file(argv[3 + i], &c->length);
        c->fd = connect_to(port, 0);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = c};
        epoll_ctl(poll_fd, EPOLL_CTL_ADD, c->fd, &e);
    }
    long start = now_ns(), end = start + (long)(atof(argv[2]) * 1e9), now = start;
    for (int i = 0; i < count; i++) {
        clients[i].sent_at = now_ns();
        send_all(clients[i].fd, clients[i].request, clients[i].length);
    }
    for (int open = count; open > 0;) {
        struct epoll_event ready[64];
        int n = epoll_wait(poll_fd, ready, 64, 10000);
        if (n == 0) return fprintf(stderr, "no answer within 10 s after %ld requests\n", done), 1;
        for (int i = 0; i < n; i++) {
            Client *c = ready[i].data.ptr;
            ssize_t got = recv(c->fd, c->in + c->used, sizeof c->in - 1 - c->used, 0);
            if (got <= 0) die("recv");
            c->used += got;
            if (!response_length(c)) continue;
            now = now_ns();
            if (c->in[9] != '2' || strstr(c->in, "\"error\":")) {
                if (!failed++) fprintf(stderr, "%s\n", c->in);
            }
            if (done == room) delays = realloc(delays, (room *= 2) * sizeof *delays);
            delays[done++] = now - c->sent_at;
            c->used = 0;
            if (now >= end) {
                open--;
                continue;
            }
            c->sent_at = now;
            send_all(c->fd, c->request, c->length);
        }
    }
    qsort(delays, done, sizeof *delays, compare_longs);
    printf("{\"requests\":%ld,\"seconds\":%.6f,\"p50_us\":%.1f,\"p99_us\":%.1f,\"failed\":%ld,\"cpu_s\":%.4f}\n", done,
           (now - start) / 1e9, percentile_us(delays, done, .5), percentile_us(delays, done, .99), failed, cpu_seconds());
}
