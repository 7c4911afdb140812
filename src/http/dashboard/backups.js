// Backups: the copies that the node keeps, and one to take away.

import { metrics, send } from "./api.js";
import { button, h, refresh, table } from "./dom.js";

export function backups() {
  const place = h("div");
  const said = h("p", { role: "alert" });
  const download = async () => {
    const response = await send("GET", "/v1/backup", { signal: AbortSignal.timeout(600_000) });
    const url = URL.createObjectURL(await response.blob());
    const link = h("a", { href: url, download: `eldest-${new Date().toISOString().replaceAll(":", "")}.backup` });
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 60_000);
  };
  return {
    element: h("div", {}, place, h("h3", {}, "Backup now"), h("p", {}, "The whole state, as text. To restore it: eldest restore FILE --yes."),
      button("Download a backup", download), said),
    every: 5000,
    async load() {
      const found = await metrics();
      const every = found.get("eldest_backup_every_seconds") ?? 0;
      const last = found.get("eldest_backup_last_success_timestamp_seconds") ?? 0;
      const rows = every === 0 ? [["schedule", "none: [backup] in the configuration keeps copies"]] : [
        ["a copy every", `${every} s`],
        ["last success", last ? new Date(last * 1000).toISOString() : "not since the start"],
        ["size of the last copy", `${found.get("eldest_backup_bytes") ?? 0} bytes`],
        ["failures since the start", `${found.get("eldest_backup_failures_total") ?? 0}`],
      ];
      refresh(place, table("Copies that this node keeps automatically", ["what", "how"], rows));
    },
  };
}
