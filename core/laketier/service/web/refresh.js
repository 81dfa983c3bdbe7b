// Shows the page anew every few seconds, without a jump: only <main> is replaced.
"use strict";
(() => {
  const every = 5000;
  const told = document.getElementById("refreshed");
  const time = () => new Date().toISOString().slice(11, 19) + " UTC";
  let last = time();
  told.textContent = "as of " + last;
  const refresh = async () => {
    if (document.hidden || document.activeElement?.tagName === "INPUT" || !document.getSelection().isCollapsed) return;
    try {
      const answer = await fetch(location.href, { headers: { accept: "text/html" } });
      if (answer.redirected) return location.reload();
      if (!answer.ok) throw new Error(answer.status);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      document.querySelector("main").replaceWith(page.querySelector("main"));
      last = time();
      told.textContent = "as of " + last;
      document.body.classList.remove("old");
    } catch {
      told.textContent = "no answer since " + last;
      document.body.classList.add("old");
    }
  };
  setInterval(refresh, every);
})();
