import { deepEqual, equal, ok } from 'node:assert/strict'
import { client, foundOn, isGone, setting, until } from './setting.mjs'

const device_id = setting.devices.august
const another = setting.devices.schlage
const { minut, noiseaware } = setting.devices
const seen = setting.accounts.seen.devices[0]

const spare = () => setting.accounts.spare.devices.pop()

const connected = (id, online) =>
  until('the device is as it was asked to be', async () => (await client.devices.get({ device_id: id })).properties.online === online)

// moved checks the result of locking and unlocking, which the client has waited for.
const moved = (attempt, type, locked) => {
  equal(attempt.action_type, type)
  equal(attempt.status, 'success')
  return until('the device says where its bolt is', async () => (await client.devices.get({ device_id })).properties.locked === locked)
}

const night = (starts_daily_at) => ({
  device_id: noiseaware,
  starts_daily_at,
  ends_daily_at: starts_daily_at.replace(':00:00', ':10:00').replace(':30:00', ':40:00'),
  noise_threshold_decibels: 50,
})

// settled waits until a threshold is on the device.
const settled = async (threshold) => {
  await until('the threshold is programmed', async () =>
    (await client.noiseSensors.noiseThresholds.list({ device_id: noiseaware, is_programmed: true })).some(
      (found) => found.noise_threshold_id === threshold.noise_threshold_id,
    ))
  return threshold
}

export const devices = {
  '/devices/get': async (call) => {
    const device = await call({ device_id })
    equal(device.device_id, device_id)
    equal(device.device_type, 'august_lock')
    equal(device.properties.online, true)
    ok(device.capabilities_supported.includes('access_code'))
  },
  '/devices/list': async (call) => {
    deepEqual((await call({ device_type: 'august_lock' })).map((device) => device.device_id), [device_id])
    deepEqual((await call({ device_ids: [device_id, another] })).map((device) => device.device_id).sort(), [device_id, another].sort())
    deepEqual(await call({ device_ids: [] }), [])
    deepEqual(await call({ custom_metadata_has: { no: 'such' } }), [])
    ok((await call()).length >= 3)
  },
  '/devices/list_device_providers': async (call) => {
    ok((await call({})).some((provider) => provider.device_provider_name === 'august'))
    ok((await call({ provider_category: 'stable' })).every((provider) => provider.provider_categories.includes('stable')))
  },
  '/devices/update': async (call) => {
    await call({ device_id: another, name: 'Back door', custom_metadata: { floor: '2', gone: null } })
    const device = await client.devices.get({ device_id: another })
    equal(device.display_name, 'Back door')
    deepEqual(device.custom_metadata, { floor: '2' })
    deepEqual((await client.devices.list({ custom_metadata_has: { floor: '2' } })).map((found) => found.device_id), [another])
  },
  '/devices/delete': async (call) => {
    const id = spare()
    await call({ device_id: id })
    await isGone('the device', () => client.devices.get({ device_id: id }))
  },
  '/devices/unmanaged/get': async (call) => {
    const device = await call({ device_id: seen })
    equal(device.device_id, seen)
    equal(device.is_managed, false)
  },
  '/devices/unmanaged/list': async (call) => {
    deepEqual((await call({ connected_account_id: setting.accounts.seen.id })).map((device) => device.device_id).sort(), setting.accounts.seen.devices.toSorted())
  },
  '/devices/unmanaged/update': async (call) => {
    const id = spare()
    await client.devices.update({ device_id: id, is_managed: false })
    await call({ device_id: id, is_managed: true })
    equal((await client.devices.get({ device_id: id })).is_managed, true)
  },
  '/devices/simulate/disconnect': async (call) => {
    await call({ device_id: another })
    await connected(another, false)
    await client.devices.simulate.connect({ device_id: another })
    await connected(another, true)
  },
  '/devices/simulate/connect': async (call) => {
    await client.devices.simulate.disconnect({ device_id: another })
    await connected(another, false)
    await call({ device_id: another })
    await connected(another, true)
  },
  '/devices/simulate/remove': async (call) => {
    const id = spare()
    await call({ device_id: id })
    await isGone('the device', () => client.devices.get({ device_id: id }))
  },
  '/locks/get': async (call) => {
    equal((await call({ device_id })).device_id, device_id)
  },
  '/locks/list': async (call) => {
    deepEqual((await call({ device_ids: [device_id] })).map((device) => device.device_id), [device_id])
  },
  '/noise_sensors/list': async (call) => {
    deepEqual(await call({ device_type: 'minut_sensor', device_ids: [device_id] }), [])
    deepEqual((await call()).map((device) => device.device_id).sort(), [minut, noiseaware].sort())
  },
  '/noise_sensors/noise_thresholds/create': async (call) => {
    const threshold = await call(night('23:00:00'))
    equal(threshold.noise_threshold_decibels, 50)
    await settled(threshold)
    await client.noiseSensors.noiseThresholds.delete({ device_id: noiseaware, noise_threshold_id: threshold.noise_threshold_id })
  },
  '/noise_sensors/noise_thresholds/get': async (call) => {
    const [{ noise_threshold_id }] = await client.noiseSensors.noiseThresholds.list({ device_id: minut })
    equal((await call({ noise_threshold_id })).noise_threshold_id, noise_threshold_id)
  },
  '/noise_sensors/noise_thresholds/list': async (call) => {
    deepEqual((await call({ device_id: minut })).map((threshold) => threshold.name).sort(), ['builtin_normal_hours', 'builtin_quiet_hours'])
  },
  '/noise_sensors/noise_thresholds/update': async (call) => {
    const [{ noise_threshold_id }] = await client.noiseSensors.noiseThresholds.list({ device_id: minut })
    await call({ device_id: minut, noise_threshold_id, noise_threshold_decibels: 45 })
    equal((await client.noiseSensors.noiseThresholds.get({ noise_threshold_id })).noise_threshold_decibels, 45)
  },
  '/noise_sensors/noise_thresholds/delete': async (call) => {
    const { noise_threshold_id } = await settled(await client.noiseSensors.noiseThresholds.create(night('23:30:00')))
    await call({ device_id: noiseaware, noise_threshold_id })
    await isGone('the threshold', () => client.noiseSensors.noiseThresholds.get({ noise_threshold_id }))
  },
  '/noise_sensors/simulate/trigger_noise_threshold': async (call) => {
    await call({ device_id: minut })
    ok((await client.devices.get({ device_id: minut })).properties.currently_triggering_noise_threshold_ids.length > 0)
  },
  '/locks/lock_door': async (call) => {
    await moved(await call({ device_id }), 'LOCK_DOOR', true)
  },
  '/locks/unlock_door': async (call) => {
    await moved(await call({ device_id }), 'UNLOCK_DOOR', false)
  },
  '/locks/configure_auto_lock': async (call) => {
    const attempt = await call({ device_id, auto_lock_enabled: true, auto_lock_delay_seconds: 7 })
    equal(attempt.action_type, 'CONFIGURE_AUTO_LOCK')
    equal(attempt.status, 'success')
    await client.locks.configureAutoLock({ device_id, auto_lock_enabled: false }) // otherwise it locks while other steps expect it to be unlocked
  },
  '/devices/report_provider_metadata': async (call) => {
    await call({ devices: [{ device_id, omnitec_metadata: {} }] })
  },
  '/devices/simulate/connect_to_hub': async (call) => {
    await client.devices.simulate.disconnectFromHub({ device_id })
    await connected(device_id, false)
    await call({ device_id })
    await connected(device_id, true)
  },
  '/devices/simulate/disconnect_from_hub': async (call) => {
    await call({ device_id })
    await connected(device_id, false)
    await client.devices.simulate.connectToHub({ device_id })
    await connected(device_id, true)
  },
  '/devices/simulate/paid_subscription': async (call) => {
    for (const is_expired of [true, false]) {
      await call({ device_id: setting.devices.nuki, is_expired })
      await until('the device says what it lacks', async () => {
        const { errors } = await client.devices.get({ device_id: setting.devices.nuki })
        return errors.some((error) => error.error_code === 'subscription_required') === is_expired
      })
    }
  },
  '/locks/simulate/keypad_code_entry': async (call) => {
    const { code } = await foundOn(device_id)
    const attempt = await call({ device_id, code })
    equal(attempt.action_type, 'SIMULATE_KEYPAD_CODE_ENTRY')
    equal(attempt.status, 'success')
  },
  '/locks/simulate/manual_lock_via_keypad': async (call) => {
    await moved(await call({ device_id }), 'SIMULATE_MANUAL_LOCK_VIA_KEYPAD', true)
  },
}
