// A lock whose release deletes the key, whoever set it, or, if RIGHT is set, only if it is its own.
function connect(port) {
  const socket = net.connect(port, "127.0.0.1"), answers = [];
  socket.on("data", d => answers.shift()(String(d)));
  const ask = (...words) => new Promise(done => {
    answers.push(done);
    socket.write(`*${words.length}\r\n` + words.map(w => `$${String(w).length}\r\n${w}\r\n`).join(""));
  });
  let key, token;
  const ours = process.env.RIGHT ? async () => (await ask("GET", key)).includes(token) : async () => true;
  return {
    async acquire(k, lease) { key = k; token = String(Math.random()); return (await ask("SET", k, token, "NX", "PX", lease))[0] === "+"; },
    async extend(lease) { return (await ask("GET", key)).includes(token) && (await ask("PEXPIRE", key, lease)) === ":1\r\n"; },
    async release() { return await ours() && (await ask("DEL", key)) === ":1\r\n"; },
  };
}
