/* An ACP agent that costs next to nothing, so that a measurement shows the server.
 *
 * It answers every request at once. The text of a prompt can ask for more:
 *   flood COUNT SIZE      COUNT updates with a text of SIZE bytes, as fast as the pipe takes them
 *   tick COUNT MICROS     COUNT updates, one every MICROS
 *   ask                   a permission request; the turn ends when it is answered
 *   hang                  a turn that ends when it is cancelled
 * Several prompts run side by side. The text of an update is "#SEQ/PID @NANOSECONDS ": its number in the session,
 * who sent it, and when (CLOCK_MONOTONIC), so that a reader can count losses and measure delay.
 */
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { IN_SIZE = 1 << 20, OUT_SIZE = 1 << 16, ID_SIZE = 64, NAME_SIZE = 64, BURST = 64 };

typedef struct {
    char name[NAME_SIZE], prompt_id[ID_SIZE];
    long seq, left, size, interval_ns, due;
    int asking, hanging;
} Session;

static char out[OUT_SIZE + 8192];
static size_t out_used;
static Session *sessions;
static int session_count, session_room, next_name, next_ask;

static long now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000L + t.tv_nsec;
}

static void flush_out(void) {
    for (size_t at = 0; at < out_used;) {
        ssize_t n = write(1, out + at, out_used - at);
        if (n <= 0) exit(0);
        at += n;
    }
    out_used = 0;
}

static void put(const char *bytes, size_t length) {
    while (length > 0) {
        size_t room = sizeof out - out_used, n = length < room ? length : room;
        memcpy(out + out_used, bytes, n);
        out_used += n, bytes += n, length -= n;
        if (out_used >= OUT_SIZE) flush_out();
    }
}

#define SAY(...) do { char line_[1024]; put(line_, snprintf(line_, sizeof line_, __VA_ARGS__)); } while (0)

/* The value of a member as it stands in the line: without quotes for a string, if `bare`. */
static int find_value(const char *line, const char *member, int bare, char *value, size_t room) {
    const char *at = strstr(line, member);
    if (!at) return 0;
    at += strlen(member);
    while (*at == ' ') at++;
    const char *end = at;
    if (*at == '"') {
        for (end = at + 1; *end && *end != '"'; end++) if (*end == '\\' && end[1]) end++;
        if (bare) at++; else if (*end) end++;
    } else {
        while (*end && !strchr(",}] ", *end)) end++;
    }
    size_t length = (size_t)(end - at) < room - 1 ? (size_t)(end - at) : room - 1;
    memcpy(value, at, length);
    value[length] = 0;
    return 1;
}

static Session *find_session(const char *name) {
    for (int i = session_count - 1; i >= 0; i--) if (!strcmp(sessions[i].name, name)) return &sessions[i];
    return NULL;
}

static Session *add_session(const char *name) {
    if (session_count == session_room) {
        session_room = session_room ? session_room * 2 : 64;
        sessions = realloc(sessions, session_room * sizeof *sessions);
    }
    Session *s = &sessions[session_count++];
    memset(s, 0, sizeof *s);
    snprintf(s->name, sizeof s->name, "%s", name);
    return s;
}

static void end_turn(Session *s, const char *reason) {
    SAY("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"stopReason\":\"%s\"}}\n", s->prompt_id, reason);
    s->left = s->asking = s->hanging = 0;
    s->prompt_id[0] = 0;
}

static void send_update(Session *s) {
    static const char padding[65537] = {[0 ... 65535] = 'x'};
    char text[96];
    int head = snprintf(text, sizeof text, "#%ld/%d @%ld ", s->seq++, (int)getpid(), now_ns());
    long rest = s->size > head ? s->size - head : 0;
    SAY("{\"jsonrpc\":\"2.0\",\"method\":\"session/update\",\"params\":{\"sessionId\":\"%s\",\"update\":{"
        "\"sessionUpdate\":\"agent_message_chunk\",\"content\":{\"type\":\"text\",\"text\":\"%s", s->name, text);
    put(padding, rest > 65536 ? 65536 : rest);
    put("\"}}}}\n", 6);
}

static void begin_turn(Session *s, const char *line, const char *id) {
    const char *text = strstr(line, "\"text\":");
    snprintf(s->prompt_id, sizeof s->prompt_id, "%s", id);
    text = text ? strchr(text + 7, '"') : NULL;
    if (text && sscanf(text, "\"flood %ld %ld", &s->left, &s->size) == 2) s->interval_ns = 0;
    else if (text && sscanf(text, "\"tick %ld %ld", &s->left, &s->interval_ns) == 2) {
        s->interval_ns *= 1000, s->size = 100, s->due = now_ns() + s->interval_ns;
    } else if (text && !strncmp(text, "\"ask", 4)) {
        s->asking = ++next_ask;
        SAY("{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"session/request_permission\",\"params\":{\"sessionId\":\"%s\","
            "\"toolCall\":{\"toolCallId\":\"t%d\"},\"options\":[{\"optionId\":\"yes\",\"name\":\"Yes\","
            "\"kind\":\"allow_once\"}]}}\n", s->asking, s->name, s->asking);
    } else if (text && !strncmp(text, "\"hang", 5)) s->hanging = 1;
    if (!s->left && !s->asking && !s->hanging) end_turn(s, "end_turn");
}

static void take_answer(const char *id) {
    for (int i = 0; i < session_count; i++)
        if (sessions[i].asking && sessions[i].asking == atoi(id)) end_turn(&sessions[i], "end_turn");
}

static void take_line(const char *line) {
    char method[64], id[ID_SIZE], name[NAME_SIZE];
    int has_id = find_value(line, "\"id\":", 0, id, sizeof id);
    if (!find_value(line, "\"method\":", 1, method, sizeof method)) {
        if (has_id) take_answer(id);
        return;
    }
    Session *s = find_value(line, "\"sessionId\":", 1, name, sizeof name) ? find_session(name) : NULL;
    if (!strcmp(method, "session/cancel")) {
        if (s && s->prompt_id[0]) end_turn(s, "cancelled");
    } else if (!has_id) {
        return;
    } else if (!strcmp(method, "initialize")) {
        SAY("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"protocolVersion\":1,\"agentCapabilities\":{"
            "\"sessionCapabilities\":{\"resume\":{}}},\"authMethods\":[]}}\n", id);
    } else if (!strcmp(method, "session/new")) {
        snprintf(name, sizeof name, "s%d-%d", ++next_name, (int)getpid());
        add_session(name);
        SAY("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"sessionId\":\"%s\"}}\n", id, name);
    } else if (!strcmp(method, "session/prompt") && s) {
        begin_turn(s, line, id);
    } else {
        if (!strcmp(method, "session/resume") && !s) add_session(name);
        SAY("{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{}}\n", id);
    }
}

/* Let every running turn send a little; gives the milliseconds until the next one wants to (-1: none does). */
static int run_turns(void) {
    int wait = -1;
    for (int i = 0; i < session_count; i++) {
        Session *s = &sessions[i];
        if (!s->left) continue;
        if (s->interval_ns) {
            if (now_ns() >= s->due) send_update(s), flush_out(), s->left--, s->due += s->interval_ns;
        } else {
            for (int n = 0; n < BURST && s->left; n++) send_update(s), s->left--;
        }
        if (!s->left) end_turn(s, "end_turn");
        else if (wait != 0) wait = s->interval_ns >= 2000000 ? 1 : 0;
    }
    return wait;
}

int main(void) {
    static char in[IN_SIZE + 1];
    size_t used = 0;
    int wait = -1;
    for (;;) {
        struct pollfd stdin_poll = {.fd = 0, .events = POLLIN};
        if (wait != 0) flush_out();
        if (poll(&stdin_poll, 1, wait) > 0) {
            ssize_t n = read(0, in + used, IN_SIZE - used);
            if (n <= 0) return 0;
            used += n;
            char *start = in, *end;
            while ((end = memchr(start, '\n', in + used - start))) {
                *end = 0;
                take_line(start);
                start = end + 1;
            }
            used -= start - in;
            memmove(in, start, used);
        }
        wait = run_turns();
    }
}
