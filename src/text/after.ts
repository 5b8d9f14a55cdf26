// Continues with a value that is usually there at once: for the few steps of a warm call and of a stream where a turn of
// the microtask queue for each message would cost more than the step itself. Everything else is `async`.

/** Calls `next` with the value, at once or when its promise resolves. */
export function after<T, Next>(value: T | Promise<T>, next: (value: T) => Next | Promise<Next>): Next | Promise<Next> {
  return value instanceof Promise ? value.then(next) : next(value);
}
