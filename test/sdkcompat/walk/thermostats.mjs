import { deepEqual, equal, ok } from 'node:assert/strict'
import { client, isGone, refusal, setting, until } from './setting.mjs'

const device_id = setting.devices.nest

const now = async () => (await client.devices.get({ device_id })).properties

let made = 0

// preset creates a climate preset, and returns what names it.
const preset = async () => {
  const climate_preset_key = `preset ${++made}`
  await client.thermostats.createClimatePreset({ device_id, climate_preset_key, hvac_mode_setting: 'heat', heating_set_point_celsius: 19 })
  return { device_id, climate_preset_key }
}

const presets = async () => (await now()).available_climate_presets.map((found) => found.climate_preset_key)

// frame returns an hour of a day that no other schedule has.
const frame = () => ({
  starts_at: new Date(Date.now() + ++made * 86_400_000).toISOString(),
  ends_at: new Date(Date.now() + made * 86_400_000 + 3_600_000).toISOString(),
})

const schedule = async () => await client.thermostats.schedules.create({ device_id, climate_preset_key: 'eco', ...frame() })

const day = { name: 'Day', periods: [{ starts_at_time: '00:00:00', climate_preset_key: 'eco' }] }

const program = async () => await client.thermostats.dailyPrograms.create({ device_id, ...day })

// set checks the attempt of a command, which the client has waited for, and what the device is set to.
const set = async (attempt, type, expected) => {
  equal(attempt.action_type, type)
  equal(attempt.status, 'success')
  const current = (await now()).current_climate_setting
  for (const [name, value] of Object.entries(expected)) equal(current[name], value)
}

export const thermostats = {
  '/thermostats/list': async (call) => {
    deepEqual((await call({})).map((found) => found.device_id), [device_id])
    deepEqual(await call({ manufacturer: 'ecobee' }), [])
  },
  '/thermostats/get': async (call) => equal((await call({ device_id })).device_id, device_id),
  '/thermostats/heat': async (call) =>
    await set(await call({ device_id, heating_set_point_celsius: 21 }), 'SET_HVAC_MODE', { hvac_mode_setting: 'heat', heating_set_point_fahrenheit: 69.8 }),
  '/thermostats/cool': async (call) =>
    await set(await call({ device_id, cooling_set_point_celsius: 25 }), 'SET_HVAC_MODE', { hvac_mode_setting: 'cool', cooling_set_point_celsius: 25 }),
  '/thermostats/heat_cool': async (call) =>
    await set(await call({ device_id, heating_set_point_celsius: 18, cooling_set_point_celsius: 26 }), 'SET_HVAC_MODE', { hvac_mode_setting: 'heat_cool' }),
  '/thermostats/off': async (call) => await set(await call({ device_id }), 'SET_HVAC_MODE', { hvac_mode_setting: 'off' }),
  '/thermostats/set_hvac_mode': async (call) =>
    await set(await call({ device_id, hvac_mode_setting: 'eco' }), 'SET_HVAC_MODE', { hvac_mode_setting: 'eco' }),
  '/thermostats/set_fan_mode': async (call) =>
    await set(await call({ device_id, fan_mode_setting: 'on' }), 'SET_FAN_MODE', { fan_mode_setting: 'on' }),
  '/thermostats/activate_climate_preset': async (call) =>
    await set(await call(await preset()), 'ACTIVATE_CLIMATE_PRESET', { heating_set_point_celsius: 19, climate_preset_key: `preset ${made}` }),
  '/thermostats/create_climate_preset': async (call) => {
    const climate_preset_key = `preset ${++made}`
    await call({ device_id, climate_preset_key, hvac_mode_setting: 'off' })
    ok((await presets()).includes(climate_preset_key))
  },
  '/thermostats/update_climate_preset': async (call) => {
    const named = await preset()
    await call({ ...named, name: 'Named' })
    const found = (await now()).available_climate_presets.find((one) => one.climate_preset_key === named.climate_preset_key)
    equal(found.display_name, 'Named')
  },
  '/thermostats/delete_climate_preset': async (call) => {
    const named = await preset()
    await call(named)
    ok(!(await presets()).includes(named.climate_preset_key))
  },
  '/thermostats/set_fallback_climate_preset': async (call) => {
    await call({ device_id, climate_preset_key: 'eco' })
    equal((await now()).fallback_climate_preset_key, 'eco')
  },
  '/thermostats/set_temperature_threshold': async (call) => {
    await call({ device_id, lower_limit_celsius: 5 })
    equal((await now()).temperature_threshold.lower_limit_fahrenheit, 41)
  },
  '/thermostats/schedules/create': async (call) => {
    const one = await call({ device_id, climate_preset_key: 'eco', name: 'Guests', is_override_allowed: true, ...frame() })
    equal(one.name, 'Guests')
    deepEqual(one.errors, [])
  },
  '/thermostats/schedules/get': async (call) => {
    const { thermostat_schedule_id } = await schedule()
    equal((await call({ thermostat_schedule_id })).device_id, device_id)
  },
  '/thermostats/schedules/list': async (call) => {
    const { thermostat_schedule_id } = await schedule()
    ok((await call({ device_id })).some((one) => one.thermostat_schedule_id === thermostat_schedule_id))
  },
  '/thermostats/schedules/update': async (call) => {
    const { thermostat_schedule_id } = await schedule()
    await call({ thermostat_schedule_id, name: 'Others' })
    equal((await client.thermostats.schedules.get({ thermostat_schedule_id })).name, 'Others')
  },
  '/thermostats/schedules/delete': async (call) => {
    const { thermostat_schedule_id } = await schedule()
    await call({ thermostat_schedule_id })
    await isGone('the schedule', () => client.thermostats.schedules.get({ thermostat_schedule_id }))
  },
  '/thermostats/daily_programs/create': async (call) => {
    const one = await call({ device_id, ...day })
    deepEqual(one.periods, day.periods)
  },
  '/thermostats/daily_programs/update': async (call) => {
    const { thermostat_daily_program_id } = await program()
    const attempt = await call({ thermostat_daily_program_id, ...day, name: 'Other day' })
    equal(attempt.action_type, 'PUSH_THERMOSTAT_PROGRAMS')
  },
  '/thermostats/daily_programs/delete': async (call) => {
    const { thermostat_daily_program_id } = await program()
    await call({ thermostat_daily_program_id })
    const error = await refusal(client.thermostats.dailyPrograms.delete({ thermostat_daily_program_id }))
    equal(error.code, 'thermostat_daily_program_not_found')
  },
  '/thermostats/update_weekly_program': async (call) => {
    const attempt = await call({ device_id })
    equal(attempt.action_type, 'PUSH_THERMOSTAT_PROGRAMS')
    equal((await now()).thermostat_weekly_program, null)
  },
  '/thermostats/simulate/hvac_mode_adjusted': async (call) => {
    await call({ device_id, hvac_mode: 'cool', cooling_set_point_celsius: 23 })
    await until('the change at the device shows', async () => (await now()).current_climate_setting.cooling_set_point_celsius === 23)
  },
  '/thermostats/simulate/temperature_reached': async (call) => {
    await call({ device_id, temperature_celsius: 22 })
    equal((await now()).temperature_fahrenheit, 71.6)
  },
}
