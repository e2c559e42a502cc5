/* The fastest server there is: it shows how much the load generators can do.
 *
 *   null_server PORT_FILE EVENTS     answers a POST with a fixed body, a GET with EVENTS events, all at once
 */
#include "http.h"
#include <pthread.h>

static const char ANSWER[] = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 38\r\n\r\n"
                             "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}  ";
static long events;

static void stream_events(int fd) {
    static const char head[] = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n: open\n\n";
    char *text = malloc(1 << 20);
    send_all(fd, head, sizeof head - 1);
    usleep(100000);
    for (long seq = 0; seq < events;) {
        size_t used = 0;
        for (long now = now_ns(); seq < events && used < (1 << 20) - 512; seq++)
            used += sprintf(text + used, "event: message\nid: %ld\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"session/update\","
                "\"params\":{\"sessionId\":\"s1\",\"update\":{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{"
                "\"type\":\"text\",\"text\":\"#%ld/1 @%ld %-70s\"}}}}\n\n", seq + 1, seq, now, "x");
        send_all(fd, text, used);
    }
    free(text);
}

static void *serve(void *given) {
    int fd = (int)(long)given, one = 1;
    char in[65537];
    size_t used = 0;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    for (ssize_t n; (n = recv(fd, in + used, sizeof in - 1 - used, 0)) > 0;) {
        used += n, in[used] = 0;
        char *body = strstr(in, "\r\n\r\n");
        if (!body) continue;
        if (!strncmp(in, "GET", 3)) {
            stream_events(fd);
            used = 0;
            continue;
        }
        body += 4;
        const char *length = find_header(in, body - in, "content-length:");
        if (used < (size_t)(body - in) + (length ? strtoul(length, NULL, 10) : 0)) continue;
        send_all(fd, ANSWER, sizeof ANSWER - 1);
        used = 0;
    }
    close(fd);
    return NULL;
}

int main(int argc, char **argv) {
    if (argc != 3) return 2;
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t size = sizeof address;
    int listener = socket(AF_INET, SOCK_STREAM, 0);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    events = atol(argv[2]);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1024)) die("listen");
    getsockname(listener, (struct sockaddr *)&address, &size);
    FILE *f = fopen(argv[1], "w");
    fprintf(f, "%d\n", ntohs(address.sin_port));
    fclose(f);
    for (;;) {
        pthread_t thread;
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) die("accept");
        pthread_create(&thread, NULL, serve, (void *)(long)fd);
        pthread_detach(thread);
    }
}
