// Runs before the scripts of a page: the contract of docs/src/browser.md, for pages that need some time until
// they can take a line.
(() => {
  if (window !== window.top) return;
  const waiting = [];
  let own = null;
  const queue = (line) => { waiting.push(line); };
  const flush = () => {
    const take = window.turnwire;
    if (take !== queue && typeof take === "function") while (waiting.length) take(waiting.shift());
  };
  Object.defineProperty(window, "turnwire", {
    configurable: true,
    get: () => own ?? queue,
    set(take) { own = take; flush(); },
  });
  window.turnwireStart = START;
  window.turnwireReport = (report) => turnwireSay(typeof report === "string" ? report : JSON.stringify(report));
  window.turnwireTake = (line) => { waiting.push(line); flush(); };
  addEventListener("load", flush);
})();
