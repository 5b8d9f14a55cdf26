// `sallyport demo`: the tour of the demo, as `dev --demo` takes it; with `--scene NAME` one attack, straight at its server and
// through a gateway in front of it, each outcome checked. Loads the development parts, as `dev` does.
// docs/guides/attacks-live.md.

import { ATTACK_SCENES } from '../dev/attack-scenes.js';
import { type AttackScene, runScene } from '../dev/attack-stage.js';
import { escapeForTerminal } from '../text/escaping.js';
import { type DevEnvironment, type DevPorts, onStage, runTourOfDemo, type StageOptions } from './dev.js';
import { type CliIo, type Command, EXIT_FINE, EXIT_UNCHECKED, fail, mayColor, readPort } from './program.js';
import { addLogOptions } from './serve.js';

type DemoOptions = Omit<StageOptions, 'demo'> & { readonly scene?: string };

async function runDemo(options: DemoOptions, io: CliIo, ports: DevPorts): Promise<number> {
  const { scene: wanted } = options;
  if (wanted === undefined) return runTourOfDemo(options, io, ports);
  if (wanted === 'list') {
    io.stdout(listScenes());
    return EXIT_FINE;
  }
  const scene = ATTACK_SCENES.find(({ name }) => name === wanted);
  if (scene === undefined) {
    fail(`there is no scene ${escapeForTerminal(wanted)}`, EXIT_UNCHECKED, io);
    io.stderr(listScenes());
    return EXIT_UNCHECKED;
  }
  return onStage({ ...options, demo: true, exit: true }, io, ports, (stage) => play(scene, stage, ports));
}

function listScenes(): string {
  const width = Math.max(...ATTACK_SCENES.map(({ name }) => name.length));
  return ATTACK_SCENES.map(({ name, title }) => `${name.padEnd(width)}  ${title}\n`).join('');
}

/** Until the scene is over. A signal ends it before its next step, and nothing more is printed. */
async function play(
  scene: AttackScene,
  { folder, ports: { data: port }, log, io, ended }: DevEnvironment,
  ports: DevPorts,
): Promise<number> {
  let signal: number | undefined;
  void ended.then((code) => {
    signal = code;
  });
  const goOn = (): void => {
    if (signal !== undefined) throw new Error('ended by a signal');
  };
  const code = await runScene(scene, {
    ...{ folder, port, hasColor: mayColor(io) },
    write(text) {
      if (signal === undefined) io.stdout(text);
    },
    async pin(file) {
      goOn();
      const { code, printed } = await ports.pin(file, true);
      if (code === EXIT_UNCHECKED) throw new Error(printed);
    },
    async start(file) {
      goOn();
      const started = await ports.start(file, log);
      if (started.kind === 'failed') return { why: started.message };
      if (started.kind === 'refused') return { why: started.diagnostics.map(({ message }) => message).join('; ') };
      return started;
    },
  });
  return signal ?? code;
}

export function demoCommand(io: CliIo, ports: DevPorts): Command {
  return {
    name: 'demo',
    summary: 'Run the demo: a tour, or with --scene one attack without and with the gateway.',
    examples: [
      'sallyport demo',
      'sallyport demo --exit            # only the tour; exit 1 if an outcome differs',
      'sallyport demo --scene list      # the names of the attacks',
      'sallyport demo --scene path-escape',
    ],
    configure(command, finish) {
      command
        .option('--scene <name>', 'play one attack and exit; list prints the names')
        .option('--exit', 'exit after the tour')
        .option('--port <port>', 'port of the endpoint (default: 8080)', readPort)
        .action(async (options: DemoOptions) => finish(await runDemo(options, io, ports)));
      addLogOptions(command, 'error');
    },
  };
}
