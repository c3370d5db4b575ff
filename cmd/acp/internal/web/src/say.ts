// say tells people who cannot see the page what has changed. It takes no focus.

let due: ReturnType<typeof setTimeout> | undefined;
let waiting: string[] = [];

export function say(text: string) {
  waiting.push(text);
  clearTimeout(due);
  due = setTimeout(() => {
    const live = document.getElementById("live");
    if (live) live.textContent = waiting.slice(-3).join(". ");
    waiting = [];
  }, 150);
}
