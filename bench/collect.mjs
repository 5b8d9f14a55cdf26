// Loaded into a gateway that is measured for what it keeps: collects garbage when it is told to.

process.on('SIGUSR2', () => {
  for (let round = 0; round < 3; round += 1) globalThis.gc?.();
});
