// Shows times in the time zone of the browser. Without scripts they are in that of the server, which
// each of them names.
const CLOCK = /\d{1,2}:\d{2}/;
const DAY = { day: "numeric", month: "short" };
const HOUR = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
const exact = new Intl.DateTimeFormat("en-GB", {
  ...DAY, ...HOUR, year: "numeric", second: "2-digit", timeZoneName: "short",
});
const of = (format) => new Intl.DateTimeFormat("en-GB", format);
const [year, hour, second, date] = [
  of({ ...DAY, year: "numeric" }), of(HOUR), of({ ...HOUR, second: "2-digit" }), of(DAY),
];

// A clock of today has the time alone, seconds only if it had them.
export function clock(moment, text) {
  const today = new Date();
  const time = (/:\d{2}:\d{2}/.test(text) ? second : hour).format(moment);
  if (moment.toDateString() === today.toDateString()) return time;
  const day = moment.getFullYear() === today.getFullYear() ? date : year;
  return `${day.format(moment)}, ${hour.format(moment)}`;
}

export function localize(root) {
  for (const element of root.querySelectorAll("time[datetime]")) {
    const moment = new Date(element.dateTime);
    if (isNaN(moment)) continue;
    element.title = exact.format(moment);
    if (CLOCK.test(element.textContent)) element.textContent = clock(moment, element.textContent);
  }
}

localize(document);
