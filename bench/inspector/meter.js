// Runs in the page before its own scripts: keeps what the browser's performance timeline says.
(() => {
  const tasks = [];
  const keys = [];
  const events = [];
  let gaps = null;
  const soon = (work) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = work;
    port2.postMessage(null);
  };
  new PerformanceObserver((list) => {
    for (const { startTime, duration } of list.getEntries()) tasks.push({ startTime, duration });
  }).observe({ type: "longtask", buffered: true });
  new PerformanceObserver((list) => {
    for (const { name, duration } of list.getEntries()) if (name === "keydown") events.push(duration);
  }).observe({ type: "event", durationThreshold: 16, buffered: true });
  // From the key to the frame that shows it: a message is handled after the frame has been drawn.
  addEventListener(
    "keydown",
    ({ timeStamp }) => {
      requestAnimationFrame(() => {
        soon(() => keys.push(performance.now() - timeStamp));
      });
    },
    { capture: true },
  );
  const watch = (last) => (now) => {
    if (gaps === null) return;
    gaps.push(now - last);
    requestAnimationFrame(watch(now));
  };
  window.meter = {
    begin() {
      tasks.length = keys.length = events.length = 0;
      gaps = [];
      requestAnimationFrame((now) => requestAnimationFrame(watch(now)));
    },
    end() {
      const taken = { tasks: tasks.map(({ duration }) => duration), keys: [...keys], events: [...events], gaps: gaps ?? [] };
      gaps = null;
      return taken;
    },
    /** Milliseconds since the navigation began, at the first frame in which the condition holds. */
    shown(condition) {
      return new Promise((resolve) => {
        const look = () => (condition() ? resolve(performance.now()) : requestAnimationFrame(look));
        look();
      });
    },
    loadTasks: () => tasks.map(({ duration }) => duration),
    /** From one end to the other in so many frames; gives how many of them showed no row where one should be. */
    sweep(selector, frames, isUp) {
      const box = document.querySelector(selector);
      const { left, top, width, height } = box.getBoundingClientRect();
      const isBlank = () => !document.elementFromPoint(left + width / 2, top + height / 2)?.closest("[role=listitem], [data-row]");
      return new Promise((resolve) => {
        let step = 0;
        let blank = 0;
        // Moved between frames, as a wheel does: the frame that follows has told the page before it is drawn.
        const move = () => {
          step += 1;
          const part = isUp ? 1 - step / frames : step / frames;
          box.scrollTop = (box.scrollHeight - box.clientHeight) * part;
          requestAnimationFrame(() => {
            if (isBlank()) blank += 1;
            if (step < frames) soon(move);
            else resolve(blank);
          });
        };
        soon(move);
      });
    },
  };
})();
