// The thermostats of the lab, in the place of a Zigbee radio: their attributes as the Zigbee specification defines them.
"use strict";
const { createRequire } = require("node:module");
const inside = createRequire(require.resolve("zigbee2mqtt/index.js"));
const Zcl = inside("zigbee-herdsman/dist/zspec/zcl");

const off = 0, auto = 1, cool = 3, heat = 4; // system modes
const running = { idle: 0, heat: 1, cool: 2 }; // running states
const hvacThermostat = 513, hvacFanCtrl = 514, userInterface = 516;
const thermostat = "hvacThermostat", fan = "hvacFanCtrl";

// profiles are the kinds of thermostats, with the models of real ones. Temperatures are in hundredths of a degree Celsius.
const profiles = {
	wall: { vendor: "Zen Within", model: "Zen-01", endpoint: 1, modes: [off, auto, cool, heat], fans: [4, 5], clusters: [hvacThermostat, hvacFanCtrl, userInterface],
		points: { occupiedHeatingSetpoint: [1000, 3000], occupiedCoolingSetpoint: [1000, 3100] } },
	radiator: { vendor: "eCozy", model: "Thermostat", endpoint: 3, modes: [off, auto, heat], fans: [], clusters: [hvacThermostat, userInterface],
		points: { occupiedHeatingSetpoint: [700, 3000] } },
};

class Thermostat {
	constructor(number, { profile }) {
		this.ieee = `0x000d6f00000000${number.toString(16).padStart(2, "0")}`;
		this.network = 0x1000 + number;
		this.name = `thermostat ${number}`;
		this.profile = profile;
		this.kind = profiles[profile];
		this.endpoint = this.kind.endpoint;
		this.clusters = [0, 1, 3, ...this.kind.clusters];
		this.deviceId = 769;
		this.manufacturer = 0;
		this.joined = false;
		this.frames = 0;
		this.heard = 0;
		this.reset();
	}
	reset() {
		this.values = { occupiedHeatingSetpoint: 2000, occupiedCoolingSetpoint: 2550, systemMode: heat, localTemp: 2100, fanMode: 5 };
		this.online = true;
		this.faults = {}; // drop: writes without effect, as many
	}
	kept() { return { values: this.values, joined: this.joined }; }
	restore({ values, joined }) { Object.assign(this, { values, joined }); }
	running() {
		const { systemMode: mode, localTemp: room, occupiedHeatingSetpoint: least, occupiedCoolingSetpoint: most } = this.values;
		if ([heat, auto].includes(mode) && room < least) return running.heat;
		return [cool, auto].includes(mode) && this.kind.points.occupiedCoolingSetpoint && room > most ? running.cool : running.idle;
	}
	attributes() {
		const { fanMode, occupiedCoolingSetpoint, ...values } = this.values;
		return {
			genBasic: { zclVersion: 3, appVersion: 1, stackVersion: 2, hwVersion: 1, manufacturerName: this.kind.vendor, modelId: this.kind.model, dateCode: "20240101", powerSource: 3, swBuildId: "1.0" },
			genPowerCfg: { batteryPercentageRemaining: 170, batteryVoltage: 58, batteryAlarmState: 0 },
			[thermostat]: { ...values, runningState: this.running(), ctrlSeqeOfOper: 4, localTemperatureCalibration: 0, ...(this.kind.points.occupiedCoolingSetpoint ? { occupiedCoolingSetpoint } : {}) },
			...(this.kind.fans.length ? { [fan]: { fanMode } } : {}),
		};
	}
	// accepts reports whether the device has the attribute with this value.
	accepts(name, value) {
		const range = this.kind.points[name];
		if (range) return value >= range[0] && value <= range[1];
		return name === "systemMode" ? this.kind.modes.includes(value) : name === "fanMode" && this.kind.fans.includes(value);
	}
	// write changes attributes by radio, and returns the records of the response.
	write(radio, frame) {
		const before = this.running();
		if (this.faults.drop) { this.faults.drop--; return [{ status: Zcl.Status.SUCCESS }]; } // acknowledged, and ignored
		for (const { attrId, attrData } of frame.payload) {
			const name = Object.values(frame.cluster.attributes).find((a) => a.ID === attrId)?.name;
			if (!this.accepts(name, attrData)) return [{ status: Zcl.Status.INVALID_VALUE, attrId }];
			this.values[name] = attrData;
		}
		radio.save();
		if (this.running() !== before) setTimeout(() => this.report(radio, thermostat, "runningState"), 50);
		return [{ status: Zcl.Status.SUCCESS }];
	}
	report(radio, cluster, name) {
		const attribute = Zcl.Utils.getCluster(cluster).attributes[name];
		radio.report(this, cluster, attribute.ID, attribute.type, this.attributes()[cluster][name]);
	}
	// adjust changes attributes as a person does at the wall.
	adjust(radio, change) {
		const before = this.running();
		for (const [name, value] of Object.entries(change)) {
			this.values[name] = value;
			this.report(radio, name === "fanMode" ? fan : thermostat, name);
		}
		radio.save();
		if (this.running() !== before) this.report(radio, thermostat, "runningState");
	}
	dump() { return { ...this.values, frames: this.frames }; }
}

module.exports = { Thermostat, profiles };
