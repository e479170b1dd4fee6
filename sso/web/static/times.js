"use strict";
// Times as the reader counts them: how long ago, with the date, time and zone of the browser on hover.
// Without JavaScript the time in UTC stays.
{
  const language = document.documentElement.lang || undefined;
  const isConsole = document.body.classList.contains("console");
  const distance = new Intl.RelativeTimeFormat(language, { style: isConsole ? "short" : "long" });
  const now = new Intl.RelativeTimeFormat(language, { numeric: "auto" }).format(0, "second");
  const day = new Intl.DateTimeFormat(language, { dateStyle: "medium" });
  const minute = new Intl.DateTimeFormat(language, { dateStyle: "medium", timeStyle: "short" });
  const exact = new Intl.DateTimeFormat(language, { dateStyle: "full", timeStyle: "long" });
  const units = [["day", 86400], ["hour", 3600], ["minute", 60]];

  function relative(time) {
    const seconds = (time - Date.now()) / 1000;
    if (Math.abs(seconds) >= 30 * 86400) return day.format(time);
    const [unit, length] = units.find(([, size]) => Math.abs(seconds) >= size) || [];
    const text = unit ? distance.format(Math.trunc(seconds / length), unit) : now;
    return isConsole ? text.replace(".", "") : text;  // "6 min ago"
  }

  function show(root) {
    for (const element of root.querySelectorAll("time[datetime]")) {
      const time = new Date(element.dateTime);
      if (Number.isNaN(time.valueOf())) continue;
      const texts = { exact: () => `${exact.format(time)} (${relative(time)})`, date: () => minute.format(time) };
      element.textContent = (texts[element.dataset.show] || (() => relative(time)))();
      element.title = exact.format(time);
    }
  }

  show(document);
  document.addEventListener("htmx:afterSettle", () => show(document));
  setInterval(() => show(document), 30000);
}
