// Nod gates the tools of opencode: it is asked before each one, and throws why
// it must not run. Written by `nod hook install opencode`; remove it with
// `nod hook uninstall opencode`.
import { spawn } from "node:child_process";

const command = ["/home/dev/the bin/nod","hook","opencode","tool.execute.before","--mode","advise"];
const patience = 600000; // ms; the hook itself gives up before

export const Nod = async ({ directory }) => {
  const parents = new Map(); // of subagents: what the hook can't know otherwise
  return {
    event: async ({ event }) => {
      const info = event.properties?.info;
      if (event.type === "session.created" && info?.parentID) parents.set(info.id, { parentID: info.parentID, agent: info.agent });
      if (event.type === "session.deleted") parents.delete(info?.id);
    },
    "tool.execute.before": async (input, output) => {
      const asked = JSON.stringify({ ...input, ...parents.get(input.sessionID), args: output.args, directory });
      const said = await new Promise((resolve) => {
        const hook = spawn(command[0], command.slice(1), { stdio: ["pipe", "pipe", "pipe"] });
        let out = "", err = "", over = false;
        const end = (answer) => { if (!over) { over = true; clearTimeout(timer); resolve(answer); } };
        const timer = setTimeout(() => { hook.kill(); end({ decision: "deny", reason: "Nod did not answer in time." }); }, patience);
        hook.stdout.on("data", (d) => (out += d));
        hook.stderr.on("data", (d) => (err += d));
        hook.stdin.on("error", () => {}); // a hook that died says so by its exit
        hook.on("error", (e) => end({ decision: "deny", reason: "Nod could not be asked: " + e.message }));
        hook.on("close", (code) => {
          if (code !== 0) return end({ decision: "deny", reason: err.trim() || "Nod could not decide (exit " + code + ")." });
          if (!out.trim()) return end({});
          try { end(JSON.parse(out)); } catch { end({ decision: "deny", reason: "Nod's answer could not be read." }); }
        });
        hook.stdin.end(asked);
      });
      if (said.decision === "deny") throw new Error(said.reason || "Nod denied this.");
    },
  };
};
