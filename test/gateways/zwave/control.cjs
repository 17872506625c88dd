// Manipulates the locks directly, unnoticed by the gateway, over HTTP: POST /<lock>/<what> with a JSON body.
"use strict";
const http = require("node:http");
const { InclusionStrategy } = require("zwave-js");
const { events } = require("./locks.cjs");

const actions = {
	async flush(_, __, { driver }) { await driver.destroy(); }, // writes the driver's cache to disk
	state: (lock) => lock.dump(),
	async offline(lock, _, { driver }) { // radio silence, which the gateway notices at its next request
		lock.faults.deaf = true;
		await driver.controller.nodes.get(lock.id)?.ping();
	},
	async online(lock) {
		lock.faults.deaf = false;
		await lock.battery();
	},
	hear: (lock) => { lock.faults.deaf = false; }, // without a report
	keypad: (lock, { slot, pin, silent }) => lock.keypad(slot, pin, silent),
	card: (lock, { user, name, silent }) => lock.card(user, name, silent),
	disable: (lock, { slot }) => lock.disable(slot),
	enter: (lock, { pin }) => lock.enter(pin),
	hand: (lock, { locked }) => lock.move(locked, locked ? events.handLock : events.handUnlock),
	adjust: (thermostat, setting) => thermostat.adjust(setting),
	fault: (lock, faults) => { Object.assign(lock.faults, faults); },
	heal: (lock) => lock.heal(),
	async remove(lock, _, { driver, controller }) { // as the driver does after an exclusion
		const node = driver.controller.nodes.get(lock.id);
		await node.ping(); // earlier requests are answered
		lock.faults.deaf = true;
		driver.controller.emit("node removed", node, 0);
		driver.controller.nodes.delete(lock.id);
		controller.removeNode(lock.id);
	},
	async include(lock, _, { driver, controller }) { // another lock of the same model, with the identifier of the removed one
		const ready = new Promise((resolve) => driver.controller.once("node added", (node) => node.once("ready", resolve)));
		controller.state.delete("inclusionState"); // otherwise zwave-js' mock stays in inclusion mode
		controller.nodePendingInclusion = lock.another();
		await driver.controller.beginInclusion({ strategy: InclusionStrategy.Insecure });
		await ready;
	},
	async reset(lock, _, { driver }) {
		lock.reset();
		await lock.report?.(); // otherwise the driver keeps what it has heard before
		await driver.controller.nodes.get(lock.id).ping();
	},
};

async function listen(lab) {
	const server = http.createServer(async (request, response) => {
		let body = "";
		for await (const part of request) body += part;
		const [, id, what] = request.url.split("/");
		response.setHeader("content-type", "application/json");
		try {
			const result = await actions[what](lab.locks.get(+id), body ? JSON.parse(body) : {}, lab);
			response.end(JSON.stringify(result ?? {}));
		} catch (e) {
			response.statusCode = 500;
			response.end(JSON.stringify({ error: String(e?.stack ?? e) }));
		}
	});
	server.keepAliveTimeout = 0; // otherwise it closes connections that a test is about to reuse
	await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
	return `http://127.0.0.1:${server.address().port}`;
}

module.exports = { listen };
