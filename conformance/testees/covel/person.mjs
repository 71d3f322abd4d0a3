// What a person can do with the client, by the names of the testee contract. For the program and for the page.

export const personOf = (client) => {
  const visit = (does) => (line) => client.visit && does(client.visit, line);
  return {
    open: ({ session }) => client.open(session),
    close: () => client.close(),
    hide: () => client.hide(),
    show: () => client.reappear(),
    handle: ({ type, throws }) => client.on(type, () => { throw new Error(throws); }),
    say: visit((at, { text }) => at.say(text)),
    type: visit((at, { text }) => { at.shown.input = text; at.show(); }),
    answer: visit((at, { form, values }) => at.answer(form, values)),
    select: visit((at, { form, values }) => at.select(form, values)),
    stop: visit((at) => at.stop()),
    retry: visit((at) => at.retry()),
    "retry-task": visit((at, { turn, runtime }) => at.retryTask(turn, runtime)),
    older: visit((at) => at.older()),
    steer: visit((at, { text }) => at.steer(text)),
    press: visit((at, { slot, control }) => at.press(slot, control)),
    recover: visit((at, { result }) => at.recover(result)),
    call: visit((at, { plugin, action, payload }) => at.call(plugin, action, payload)),
    resume: visit((at, { suspension, data }) => at.resume(suspension, data)),
    debug: visit((at) => at.openDebugPage()),
    copy: visit((at, { call, request }) => at.copy(call, request)),
    rebuild: visit((at, { call, request }) => at.rebuild(call, request)),
    export: visit((at) => at.exportSession()),
    decide: visit((at, { allow }) => at.decide(allow)),
  };
};
