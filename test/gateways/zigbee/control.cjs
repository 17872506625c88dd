// Manipulates the locks directly, unnoticed by zigbee2mqtt, over HTTP: POST /<lock>/<what> with a JSON body.
"use strict";
const http = require("node:http");
const { Radio } = require("./radio.cjs");

const actions = {
	state: (lock) => lock.dump(),
	online: (lock, { online }) => { lock.online = online; },
	keypad: (lock, { slot, pin }) => Radio.current.program(lock, slot, pin || undefined, "keypad"),
	silently: (lock, { slot, pin }) => { if (pin) lock.pins.set(slot, pin); else lock.pins.delete(slot); Radio.save(); }, // a lock that does not report changes
	disable(lock, { slot }) {
		lock.disabled.add(slot);
		Radio.save();
		Radio.current.tellProgrammed(lock, "changed", slot, "keypad");
	},
	adjust: (thermostat, change) => thermostat.adjust(Radio.current, change),
	report: (lock) => Radio.current.report(lock, "genPowerCfg", 33, 32, 170),
	enter(lock, { pin }) {
		const slot = [...lock.pins].find(([n, has]) => has === pin && !lock.disabled.has(n))?.[0];
		if (slot === undefined) Radio.current.tellOperated(lock, "wrong", 0xffff, "keypad");
		else Radio.current.move(lock, false, "unlock", slot, "keypad");
	},
	hand: (lock) => Radio.current.move(lock, true, "manualLock", 0xffff, "manual"),
	fault: (lock, faults) => { Object.assign(lock.faults, faults); },
	leave: (lock) => Radio.current.leave(lock),
	join: (lock) => Radio.current.join(lock),
	reset(lock) {
		lock.reset();
		Radio.save();
		if (!lock.joined) Radio.current.join(lock);
	},
};

module.exports.listen = async () => {
	const server = http.createServer(async (request, response) => {
		let body = "";
		for await (const part of request) body += part;
		const [, ieee, what] = request.url.split("/");
		try {
			response.end(JSON.stringify(actions[what](Radio.locks.find((l) => l.ieee === ieee), body ? JSON.parse(body) : {}) ?? {}));
		} catch (e) {
			response.statusCode = 500;
			response.end(String(e?.stack ?? e));
		}
	});
	server.keepAliveTimeout = 0; // otherwise it closes connections that a test is about to reuse
	await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
	return `http://127.0.0.1:${server.address().port}`;
};
