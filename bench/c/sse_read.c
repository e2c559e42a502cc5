/* Readers of event streams that count what arrives, what is missing and what comes twice.
 *
 *   sse_read PORT EXPECTED IDLE_MS BYTES_PER_S STALL_MS REQUEST_FILE...
 *
 * One stream per file; the file is the whole HTTP request. Ends when every stream has EXPECTED events, or when nothing
 * has come for IDLE_MS. BYTES_PER_S > 0 makes a slow reader. STALL_MS > 0 makes one that reads nothing for so long
 * after its first event. Prints "ready" once every stream has answered, and then one JSON line at the end.
 *
 * An event is a data line with the text "#SEQ/PID @NANOSECONDS " (see stub_agent.c).
 */
#include "http.h"

enum { BUFFER = 1 << 20 };

typedef struct {
    int fd, is_open, is_chunked, is_done;
    char *raw, *text;
    size_t raw_used, text_used, chunk_left;
    long events, missing, doubled, next, gaps;
} Stream;

static long expected, opened_at, first_sent, last_came, *delays, delay_count, delay_room = 1 << 16;

static void take_event(Stream *s, char *line, char *end, long now) {
    if (memmem(line, end - line, "_sandboxagent/stream/gap", 24)) s->gaps++;
    char *mark = memmem(line, end - line, "\"text\":\"#", 9);
    if (!mark) return;
    char *at;
    long seq = strtol(mark + 9, &at, 10);
    char *stamp = memchr(at, '@', end - at);
    long sent = stamp ? strtol(stamp + 1, NULL, 10) : 0;
    if (seq < s->next) {
        s->doubled++;
        return;
    }
    s->missing += seq - s->next;
    s->next = seq + 1;
    s->events++;
    if (!first_sent || sent < first_sent) first_sent = sent;
    last_came = now;
    if (delay_count == delay_room) delays = realloc(delays, (delay_room *= 2) * sizeof *delays);
    delays[delay_count++] = now - sent;
}

static void take_lines(Stream *s, long now) {
    char *start = s->text, *stop = s->text + s->text_used, *end;
    while ((end = memchr(start, '\n', stop - start))) {
        if (end - start > 5 && !memcmp(start, "data:", 5)) take_event(s, start, end, now);
        start = end + 1;
    }
    s->text_used = stop - start;
    memmove(s->text, start, s->text_used);
    if (s->text_used > BUFFER) exit(fprintf(stderr, "an event longer than %d bytes\n", BUFFER));
}

/* Move what is decoded of the body from `raw` to `text`. */
static void decode_body(Stream *s) {
    char *at = s->raw, *stop = s->raw + s->raw_used;
    while (at < stop) {
        if (s->is_chunked && s->chunk_left == 0) {
            char *end = memchr(at, '\n', stop - at);
            if (!end) break;
            if (end - at > 1) s->chunk_left = strtoul(at, NULL, 16);
            at = end + 1;
            continue;
        }
        size_t n = stop - at;
        if (s->is_chunked && n > s->chunk_left) n = s->chunk_left;
        memcpy(s->text + s->text_used, at, n);
        s->text_used += n, at += n;
        if (s->is_chunked) s->chunk_left -= n;
    }
    s->raw_used = stop - at;
    memmove(s->raw, at, s->raw_used);
}

static int open_body(Stream *s) {
    s->raw[s->raw_used] = 0;
    char *body = strstr(s->raw, "\r\n\r\n");
    if (!body) return 0;
    body += 4;
    if (strncmp(s->raw + 9, "200", 3)) exit(fprintf(stderr, "%s\n", s->raw));
    s->is_chunked = find_header(s->raw, body - s->raw, "transfer-encoding:") != NULL;
    s->is_open = 1;
    s->raw_used -= body - s->raw;
    memmove(s->raw, body, s->raw_used);
    return 1;
}

int main(int argc, char **argv) {
    if (argc < 7) return fprintf(stderr, "usage: see the head of sse_read.c\n"), 2;
    int port = atoi(argv[1]), count = argc - 6, poll_fd = epoll_create1(0), opened = 0, done = 0, stalled = 0;
    long idle_ms = atol(argv[3]), rate = atol(argv[4]), stall_ms = atol(argv[5]), taken = 0, began = 0;
    expected = atol(argv[2]);
    delays = malloc(delay_room * sizeof *delays);
    Stream *streams = calloc(count, sizeof *streams);
    for (int i = 0; i < count; i++) {
        Stream *s = &streams[i];
        size_t length;
        char *request = read_file(argv[6 + i], &length);
        s->raw = malloc(BUFFER + 1), s->text = malloc(2 * BUFFER);
        s->fd = connect_to(port, rate || stall_ms ? 65536 : 0);
        send_all(s->fd, request, length);
        struct epoll_event e = {.events = EPOLLIN, .data.ptr = s};
        epoll_ctl(poll_fd, EPOLL_CTL_ADD, s->fd, &e);
    }
    while (done < count) {
        struct epoll_event ready[64];
        int n = epoll_wait(poll_fd, ready, 64, opened < count ? 10000 : idle_ms);
        if (n == 0) break;
        for (int i = 0; i < n; i++) {
            Stream *s = ready[i].data.ptr;
            size_t room = BUFFER - s->raw_used;
            if (rate && began) {
                while ((now_ns() - began) / 1e9 * rate < taken + 8192) usleep(2000);
                room = room < 8192 ? room : 8192;
            }
            ssize_t got = recv(s->fd, s->raw + s->raw_used, room, 0);
            if (got <= 0) {
                epoll_ctl(poll_fd, EPOLL_CTL_DEL, s->fd, NULL);
                done += !s->is_done, s->is_done = 1;
                continue;
            }
            s->raw_used += got, taken += got;
            if (!s->is_open) {
                if (!open_body(s)) continue;
                if (++opened == count) opened_at = now_ns(), puts("ready"), fflush(stdout);
            }
            decode_body(s);
            take_lines(s, now_ns());
            if (s->events && !began) began = now_ns(), taken = 0;
            if (s->events && stall_ms && !stalled) stalled = 1, usleep(stall_ms * 1000);
            if (!s->is_done && s->next >= expected) s->is_done = 1, done++;
        }
    }
    long events = 0, missing = 0, doubled = 0, gaps = 0;
    for (int i = 0; i < count; i++) {
        Stream *s = &streams[i];
        events += s->events, doubled += s->doubled, gaps += s->gaps;
        missing += s->missing + (s->next < expected ? expected - s->next : 0);
    }
    qsort(delays, delay_count, sizeof *delays, compare_longs);
    printf("{\"events\":%ld,\"missing\":%ld,\"doubled\":%ld,\"gaps\":%ld,\"seconds\":%.6f,\"open_s\":%.6f,\"p50_us\":%.1f,"
           "\"p99_us\":%.1f,\"cpu_s\":%.4f}\n", events, missing, doubled, gaps, (last_came - first_sent) / 1e9, (last_came - opened_at) / 1e9,
           percentile_us(delays, delay_count, .5), percentile_us(delays, delay_count, .99), cpu_seconds());
}
