// The thermostats of the lab. Modes, set points, and sensors are zwave-js' mocks; added here is what they lack: fans,
// operating states, reports of what a person changes at the wall, and rounding. zwave-js' own mock accepts no set point
// above its minimum, so the set points are written here.
"use strict";
const { CommandClass, ThermostatMode, ThermostatSetpointType } = require("@zwave-js/cc");
const { ThermostatFanModeCCGet, ThermostatFanModeCCSet, ThermostatFanModeCCSupportedGet } = require("@zwave-js/cc/ThermostatFanModeCC");
const { ThermostatFanStateCCGet } = require("@zwave-js/cc/ThermostatFanStateCC");
const { ThermostatModeCCReport, ThermostatModeCCSet } = require("@zwave-js/cc/ThermostatModeCC");
const { ThermostatOperatingStateCCGet, ThermostatOperatingStateCCReport } = require("@zwave-js/cc/ThermostatOperatingStateCC");
const { ThermostatSetpointCCReport, ThermostatSetpointCCSet } = require("@zwave-js/cc/ThermostatSetpointCC");
const { MultilevelSensorCCReport } = require("@zwave-js/cc/MultilevelSensorCC");
const { CommandClasses: CC } = require("@zwave-js/core");
const { Lock } = require("./locks.cjs");

// zwave-js decodes no command to set a fan, because a controller never receives one.
ThermostatFanModeCCSet.from = (raw, ctx) => new ThermostatFanModeCCSet({ nodeId: ctx.sourceNodeId, mode: raw.payload[0] & 15, off: raw.payload[0] > 127 });

const M = ThermostatMode, heating = ThermostatSetpointType.Heating, cooling = ThermostatSetpointType.Cooling;
const saving = ThermostatSetpointType["Energy Save Heating"];
const MODE = "ThermostatMode_mode", FAN = "ThermostatFanMode_mode", ROOM = "Room_temperature";
const pointKey = (type) => `ThermostatSetpoint_setpoint_${type}`, scaleKey = (type) => `ThermostatSetpoint_scale_${type}`;
const idle = 0, heats = 1, cools = 2, fahrenheit = 1, airTemperature = 1, humidity = 5;

// profiles are the kinds of thermostats, with fingerprints of real ones. Temperatures are in the unit of the device.
const profiles = {
	wall: { product: [0x0039, 0x0011, 0x0008], scale: fahrenheit, step: 1, room: 70, humidity: 41, fans: [0, 1, 6], // Honeywell T6 Pro
		modes: [M.Off, M.Heat, M.Cool, M.Auto, M["Energy heat"]],
		points: { [heating]: { minValue: 40, maxValue: 90, defaultValue: 68, scale: "°F" }, [cooling]: { minValue: 50, maxValue: 99, defaultValue: 76, scale: "°F" } } },
	radiator: { product: [0x0148, 0x0003, 0x0001], scale: 0, step: 0.5, room: 19.5, supervised: true, // Eurotronic Spirit
		modes: [M.Off, M.Heat, M["Energy heat"], M["Full power"]],
		points: { [heating]: { minValue: 8, maxValue: 28, defaultValue: 20, scale: "°C" }, [saving]: { minValue: 8, maxValue: 28, defaultValue: 17, scale: "°C" } } },
};

class Thermostat extends Lock {
	constructor(controller, spec) {
		super(controller, spec);
		this.kind = profiles[spec.profile];
	}

	capabilities() {
		const [manufacturerId, productType, productId] = this.kind.product;
		const { points: setpoints, modes: supportedModes, fans, scale } = this.kind;
		const sensors = { [airTemperature]: { supportedScales: [scale] }, ...(this.kind.humidity ? { [humidity]: { supportedScales: [0] } } : {}) };
		const getValue = (type) => type === humidity ? this.kind.humidity : this.node.state.get(ROOM);
		return { manufacturerId, productType, productId, isListening: false, isFrequentListening: "1000ms", isRouting: true, supportsBeaming: true,
			genericDeviceClass: 0x08, specificDeviceClass: 0x06, firmwareVersion: "1.3", // Thermostat, Thermostat General V2
			commandClasses: [
				{ ccId: CC.Version, version: 2, isSupported: true }, { ccId: CC["Z-Wave Plus Info"], version: 2, isSupported: true },
				{ ccId: CC["Manufacturer Specific"], version: 1, isSupported: true }, { ccId: CC.Battery, version: 1, isSupported: true },
				{ ccId: CC["Thermostat Mode"], version: 2, isSupported: true, supportedModes },
				{ ccId: CC["Thermostat Setpoint"], version: 3, isSupported: true, setpoints },
				{ ccId: CC["Multilevel Sensor"], version: 5, isSupported: true, sensors, getValue },
				{ ccId: CC["Thermostat Operating State"], version: 1, isSupported: true },
				...(fans ? [{ ccId: CC["Thermostat Fan Mode"], version: 3, isSupported: true }, { ccId: CC["Thermostat Fan State"], version: 1, isSupported: true }] : []),
				...(this.kind.supervised ? [{ ccId: CC.Supervision, version: 1, isSupported: true }] : []),
			] };
	}

	// settle sets what the memory lacks to the factory state.
	settle() {
		const { state } = this.node, keep = (key, value) => { if (!state.has(key)) state.set(key, value); };
		keep(MODE, M.Heat);
		keep(FAN, 0);
		keep(ROOM, this.kind.room);
		for (const [type, { defaultValue }] of Object.entries(this.kind.points)) {
			keep(pointKey(type), defaultValue);
			keep(scaleKey(type), this.kind.scale);
		}
	}

	wire(save) {
		super.wire(save);
		this.settle();
	}

	reset() {
		super.reset();
		this.settle();
	}

	// running returns what runs now.
	running() {
		const { state } = this.node, room = state.get(ROOM), mode = state.get(MODE);
		const heat = state.get(pointKey(mode === M["Energy heat"] && this.kind.points[saving] ? saving : heating));
		if ([M.Heat, M.Auto, M["Energy heat"]].includes(mode) && room < heat) return heats;
		return [M.Cool, M.Auto].includes(mode) && room > state.get(pointKey(cooling)) ? cools : idle;
	}

	raw(ccId, ccCommand, ...payload) { return new CommandClass({ nodeId: this.controller.ownNodeId, ccId, ccCommand, payload: Uint8Array.from(payload) }); }
	fanMode() { return this.raw(CC["Thermostat Fan Mode"], 3, this.node.state.get(FAN)); }
	fanState() { return this.raw(CC["Thermostat Fan State"], 3, this.running() !== idle || this.node.state.get(FAN) === 1 ? 1 : 0); }
	operating() { return new ThermostatOperatingStateCCReport({ nodeId: this.controller.ownNodeId, state: this.running() }); }

	// A thermostat without radio reports nothing.
	async send(cc) { if (!this.faults.deaf) await super.send(cc); }

	// tell reports what runs now.
	async tell() {
		await this.send(this.operating());
		if (this.kind.fans) await this.send(this.fanState());
	}

	// report reports everything.
	async report() {
		const { state } = this.node, nodeId = this.controller.ownNodeId;
		await this.send(new ThermostatModeCCReport({ nodeId, mode: state.get(MODE) }));
		for (const type of Object.keys(this.kind.points)) {
			await this.send(new ThermostatSetpointCCReport({ nodeId, type: +type, value: state.get(pointKey(type)), scale: this.kind.scale }));
		}
		if (this.kind.fans) await this.send(this.fanMode());
		await this.send(new MultilevelSensorCCReport({ nodeId, type: airTemperature, scale: this.kind.scale, value: state.get(ROOM) }));
		await this.tell();
	}

	// adjust changes the setting as a person does at the wall.
	async adjust({ mode, fan, heat, cool, temperature }) {
		const { state } = this.node, change = (key, value) => { if (value !== undefined) state.set(key, value); };
		change(MODE, mode);
		change(FAN, fan);
		change(pointKey(heating), heat);
		change(pointKey(cooling), cool);
		change(ROOM, temperature);
		await this.report();
	}

	// accepts reports whether a write takes effect, and acts on the faults.
	accepts() {
		if (this.faults.drop > 0) { this.faults.drop--; return false; } // acknowledged on the radio, and ignored
		if (this.faults.die === "before") process.kill(process.pid, "SIGKILL");
		return true;
	}

	behaviors() {
		const thermostat = this;
		const set = (key, value) => {
			thermostat.node.state.set(key, value);
			if (thermostat.faults.die === "after") process.kill(process.pid, "SIGKILL");
			setTimeout(() => void thermostat.tell(), 50);
			return { action: "ok" };
		};
		const writes = { handleCC(controller, self, got) {
			const isPoint = got instanceof ThermostatSetpointCCSet;
			if (!isPoint && !(got instanceof ThermostatModeCCSet) && !(got instanceof ThermostatFanModeCCSet)) return;
			if (!thermostat.accepts()) return { action: "stop" };
			if (got instanceof ThermostatModeCCSet) return thermostat.kind.modes.includes(got.mode) ? set(MODE, got.mode) : { action: "fail" };
			if (got instanceof ThermostatFanModeCCSet) return thermostat.kind.fans?.includes(got.mode) ? set(FAN, got.mode) : { action: "fail" };
			const { step, scale, points } = thermostat.kind, limits = points[got.setpointType];
			if (!limits || got.scale !== scale || got.value < limits.minValue || got.value > limits.maxValue) return { action: "fail" };
			return set(pointKey(got.setpointType), Math.round(got.value / step) * step);
		} };
		const reads = { handleCC(controller, self, got) {
			if (got instanceof ThermostatFanModeCCGet) return { action: "sendCC", cc: thermostat.fanMode() };
			if (got instanceof ThermostatFanModeCCSupportedGet) return { action: "sendCC",
				cc: thermostat.raw(CC["Thermostat Fan Mode"], 5, thermostat.kind.fans.reduce((mask, fan) => mask | 1 << fan, 0)) };
			if (got instanceof ThermostatFanStateCCGet) return { action: "sendCC", cc: thermostat.fanState() };
			if (got instanceof ThermostatOperatingStateCCGet) return { action: "sendCC", cc: thermostat.operating() };
		} };
		return [...super.behaviors(), reads, writes];
	}

	dump() {
		const { state } = this.node;
		return { mode: state.get(MODE), fan: state.get(FAN), heat: state.get(pointKey(heating)), cool: state.get(pointKey(cooling)),
			temperature: state.get(ROOM), frames: this.frames };
	}
}

module.exports = { Thermostat, profiles };
