// Loads the page. If one of its files does not arrive, say because the network changes meanwhile, a browser shows an empty page for ever.

const AGAIN_MS = 3000;

import("./app.js").catch((error) => {
  console.warn(error);
  document.getElementById("summary").textContent = "Some files of this page did not arrive. It is loaded again in a moment.";
  setTimeout(() => location.reload(), AGAIN_MS);
});
