function show() {
  readState();
  showTables();
}

startTables();
window.addEventListener("hashchange", show);
show();
