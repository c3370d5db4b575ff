// afterTask calls f once the task that runs is over, with its microtasks; in a frame, once that is drawn.
export function afterTask(f: () => void) {
  const { port1, port2 } = new MessageChannel();
  port1.onmessage = () => {
    port1.close();
    f();
  };
  port2.postMessage(null);
}
