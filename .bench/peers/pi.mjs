// Drives the engine of pi-permission-system: pi.mjs NODE_MODULES reads one
// command a line, as JSON, and writes one line of JSON for each.
//
//   {"load": NAME, "config": POLICY, "questions": [...], "early": QUESTION}
//     -> {"answers": [...]}                         what it says to the questions
//   {"run": COUNT, "of": NAME, "ask": "early" | "mix"}
//     -> {"cpu": NS}                                for so many decisions
//   {"gate": DIR, "config": POLICY}  makes DIR the project of whole bash calls
//     -> {}
//   {"call": COMMAND, "run": COUNT}
//     -> {"cpu": NS, "allowed": BOOL}
import { mkdirSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { createInterface } from "node:readline";

const modules = process.argv[2];
const { createJiti } = createRequire(join(modules, "x.js"))("jiti");
const jiti = createJiti(join(modules, "x.js"));
const source = (name) => jiti.import(join(modules, "@gotgenes/pi-permission-system/src", name));
const { evaluate } = await source("rule.ts");
const { posixPathFlavor } = await source("path/path-flavor.ts");
const { normalizeFlatConfig } = await source("normalize.ts");
const { composeRuleset, synthesizeBaseline, synthesizeDefaults } = await source("synthesize.ts");
const { PermissionManager } = await source("permission-manager.ts");
const { PermissionResolver } = await source("permission-resolver.ts");
const { PathNormalizer } = await source("path-normalizer.ts");
const { ToolCallGatePipeline } = await source("handlers/gates/tool-call-gate-pipeline.ts");
const { isGateBypass } = await source("handlers/gates/descriptor.ts");

const sets = new Map();
let gate;

// cpu is the processor time of this process, in ns.
const cpu = () => {
  const { user, system } = process.cpuUsage();
  return (user + system) * 1000;
};

// ruleset is what its PermissionManager makes of one policy file.
function ruleset({ permission: { "*": fallback, ...rest } }) {
  const rules = normalizeFlatConfig(rest).map((r) => ({ ...r, layer: "config", origin: "global" }));
  return composeRuleset(synthesizeDefaults(fallback), synthesizeBaseline(rules), rules);
}

const decide = (rules, q) => evaluate(q.surface, q.value, rules, posixPathFlavor);

function load({ load: name, config, questions, early }) {
  const rules = ruleset(config);
  sets.set(name, { rules, early: [early], mix: questions });
  return {
    answers: questions.map((q) => {
      const r = decide(rules, q);
      return { action: r.action, pattern: r.layer === "config" ? r.pattern : "" };
    }),
  };
}

function run({ run: count, of, ask }) {
  const { rules, [ask]: questions } = sets.get(of);
  const start = cpu();
  for (let i = 0; i < count; i++) {
    decide(rules, questions[i % questions.length]);
  }
  return { cpu: cpu() - start };
}

// openGate puts its gates together as for a session, with one that lets
// through what a rule allows in place of the one that shows dialogs.
function openGate({ gate: dir, config }) {
  const agentDir = join(dir, "agent");
  const cwd = join(dir, "proj");
  mkdirSync(join(agentDir, "extensions/pi-permission-system"), { recursive: true });
  writeFileSync(join(agentDir, "extensions/pi-permission-system/config.json"), JSON.stringify(config));
  const manager = new PermissionManager({ agentDir });
  manager.configureForCwd(cwd);
  const resolver = new PermissionResolver(manager, { getRuleset: () => [] });
  const normalizer = new PathNormalizer(posixPathFlavor, cwd);
  const pipeline = new ToolCallGatePipeline(resolver, {
    getActiveSkillEntries: () => [],
    getInfrastructureReadDirs: () => [],
    getToolPreviewLimits: () => ({
      toolInputPreviewMaxLength: 200, toolTextSummaryMaxLength: 80, toolInputLogPreviewMaxLength: 1000,
    }),
    getPathNormalizer: () => normalizer,
    getShellToolAliases: () => undefined,
    getPromotablePathTokenMatcher: (agent) => manager.getPromotablePathTokenMatcher(agent),
  });
  const runner = {
    async run(result) {
      if (!result || isGateBypass(result)) return { action: "allow" };
      const state = result.preCheck?.state ?? result.preResolved?.state
        ?? resolver.resolve({ kind: "tool", surface: result.surface, input: result.input }).state;
      return state === "allow" ? { action: "allow" } : { action: "block", reason: state };
    },
  };
  gate = (command) => pipeline.evaluate({ toolName: "bash", agentName: null, input: { command }, toolCallId: "1", cwd }, runner);
  return {};
}

async function call({ call: command, run: count }) {
  let allowed = true;
  const start = cpu();
  for (let i = 0; i < count; i++) {
    const outcome = await gate(command);
    allowed &&= outcome.action === "allow";
  }
  return { cpu: cpu() - start, allowed };
}

for await (const line of createInterface({ input: process.stdin })) {
  const command = JSON.parse(line);
  const does = "load" in command ? load : "gate" in command ? openGate : "call" in command ? call : run;
  process.stdout.write(`${JSON.stringify(await does(command))}\n`);
}
