// Runs zigbee2mqtt on an in-memory radio. The argument is JSON: data (a folder), server, user, password, topic and
// locks, each with profile and slots; some profiles are thermostats. Prints one line of JSON when all are configured.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const { Radio } = require("./radio.cjs");
const { listen } = require("./control.cjs");

const options = JSON.parse(process.argv[2]);
process.argv.length = 2;
Radio.install(options.locks, path.join(options.data, "locks.json"));

const file = path.join(options.data, "configuration.yaml");
const again = fs.existsSync(file);
if (!again) {
	fs.writeFileSync(file, JSON.stringify({ // JSON is YAML
		version: 5,
		homeassistant: { enabled: false },
		frontend: { enabled: false },
		mqtt: { base_topic: options.topic, server: options.server, user: options.user, password: options.password },
		serial: { port: "/dev/null", adapter: "zstack" },
		advanced: { log_level: "info", log_output: ["console"], pan_id: 6754, network_key: [1, 3, 5, 7, 9, 11, 13, 15, 0, 2, 4, 6, 8, 10, 12, 13], channel: 11, ext_pan_id: [221, 221, 221, 221, 221, 221, 221, 221], last_seen: "ISO_8601" },
		availability: { enabled: true, active: { timeout: 1 }, passive: { timeout: 1 } },
		device_options: { expose_pin: true, availability: { timeout: 0.05 } },
		devices: Object.fromEntries(Radio.locks.map((l) => [l.ieee, { friendly_name: l.name, expose_pin: l.profile !== "hidden" }])),
		ota: { disable_automatic_update_check: true },
	}));
}
process.env.ZIGBEE2MQTT_DATA = options.data;
process.env.GIT_DIR = "/nowhere"; // otherwise zigbee2mqtt takes our repository for its own, and rebuilds itself

// zigbee2mqtt logs to a file that a lock is configured.
const log = fs.createWriteStream(path.join(options.data, "log.txt"), { flags: "a" });
const print = process.stdout.write.bind(process.stdout);
const waits = new Set(Radio.locks.map((l) => `'${l.name}'`));
let control;
process.stdout.write = (text) => {
	log.write(text);
	const configured = /Successfully configured ('[^']+')/.exec(text);
	if (configured && waits.delete(configured[1]) && waits.size === 0) control.then((url) => print(`${JSON.stringify({ control: url })}\n`));
	if (again && /Zigbee2MQTT started!/.test(text)) control.then((url) => print(`${JSON.stringify({ control: url })}\n`));
	return true;
};
control = listen();
process.stdin.on("end", () => process.exit(0)).resume(); // it ends with the test
const main = require.resolve("zigbee2mqtt/index.js");
process.argv[1] = main;
require("node:module")._load(main, null, true); // as the main module, because it does nothing otherwise
