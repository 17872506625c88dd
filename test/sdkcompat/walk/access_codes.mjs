import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { client, codeOn, foundOn, isGone, pin, setting, until } from './setting.mjs'

const device_id = setting.devices.august
const another = setting.devices.schlage
const hub = setting.devices.smartthings

const get = (code) => client.accessCodes.get({ access_code_id: code.access_code_id })

const sorted = (codes) => codes.map((code) => code.access_code_id).sort()

export const accessCodes = {
  '/access_codes/create': async (call) => {
    const code = pin()
    const made = await call({ device_id, name: 'Guest', code })
    equal(made.code, code)
    equal(made.name, 'Guest')
    equal(made.type, 'ongoing')
    await until('the code is on its device', async () => (await get(made)).status === 'set')

    const starts_at = new Date(Date.now() + 3_600_000).toISOString()
    const ends_at = new Date(Date.now() + 7_200_000).toISOString()
    const bound = await call({ device_id, starts_at, ends_at })
    equal(bound.type, 'time_bound')
    equal(new Date(bound.starts_at).getTime(), new Date(starts_at).getTime())
    match(bound.code, /^\d{4,}$/)
  },
  '/access_codes/create_multiple': async (call) => {
    const made = await call({ device_ids: [device_id, another], name: 'Many', behavior_when_code_cannot_be_shared: 'throw' })
    deepEqual(made.map((code) => code.device_id).sort(), [device_id, another].sort())
    equal(new Set(made.map((code) => code.code)).size, 1)
    ok(made[0].common_code_key)
  },
  '/access_codes/update_multiple': async (call) => {
    const [one, other] = await client.accessCodes.createMultiple({ device_ids: [device_id, another], name: 'Many' })
    await call({ common_code_key: one.common_code_key, name: 'All' })
    equal((await get(one)).name, 'All')
    equal((await get(other)).name, 'All')
  },
  '/access_codes/get': async (call) => {
    const made = await codeOn(device_id)
    equal((await call({ access_code_id: made.access_code_id })).code, made.code)
    equal((await call({ device_id, code: made.code })).access_code_id, made.access_code_id)
  },
  '/access_codes/list': async (call) => {
    const ids = sorted([await codeOn(device_id), await codeOn(device_id)])
    deepEqual(sorted(await call({ access_code_ids: ids })), ids)
    ok((await call({ device_id })).length >= 2)
  },
  '/access_codes/update': async (call) => {
    const made = await codeOn(device_id)
    const code = pin()
    await call({ access_code_id: made.access_code_id, name: 'New', code })
    const changed = await until('the change is on the device', async () => {
      const now = await get(made)
      return now.code === code && now.status === 'set' && now
    })
    equal(changed.name, 'New')
  },
  '/access_codes/delete': async (call) => {
    const made = await codeOn(device_id)
    await call({ access_code_id: made.access_code_id })
    await isGone('the code', () => get(made))
  },
  '/access_codes/pull_backup_access_code': async (call) => {
    const bound = { starts_at: new Date().toISOString(), ends_at: new Date(Date.now() + 3_600_000).toISOString() }
    const { access_code_id, code } = await codeOn(device_id, { ...bound, use_backup_access_code_pool: true })
    await until('a backup code is on the device', async () => (await get({ access_code_id })).is_backup_access_code_available)
    const backup = await call({ access_code_id })
    equal(backup.is_backup, true)
    ok(backup.code !== code)
    equal((await get({ access_code_id })).pulled_backup_access_code_id, backup.access_code_id)
  },
  '/access_codes/generate_code': async (call) => {
    equal((await call({ device_id })).device_id, device_id)
  },
  '/access_codes/report_device_constraints': async (call) => {
    await call({ device_id: hub, supported_code_lengths: [4, 6] })
    deepEqual((await client.devices.get({ device_id: hub })).properties.supported_code_lengths, [4, 6])
  },
  '/access_codes/simulate/create_unmanaged_access_code': async (call) => {
    const found = await call({ device_id, name: 'Typed in', code: pin() })
    equal(found.is_managed, false)
    equal(found.device_id, device_id)
  },
  '/access_codes/unmanaged/get': async (call) => {
    const { access_code_id, code } = await foundOn(device_id)
    const found = await call({ access_code_id })
    equal(found.code, code)
    equal(found.is_managed, false)
  },
  '/access_codes/unmanaged/list': async (call) => {
    const { access_code_id } = await foundOn(device_id)
    ok((await call({ device_id })).some((found) => found.access_code_id === access_code_id))
  },
  '/access_codes/unmanaged/update': async (call) => {
    const found = await foundOn(device_id)
    await call({ access_code_id: found.access_code_id, is_managed: true })
    await until('the code is managed', async () => (await client.accessCodes.list({ device_id })).some((code) => code.access_code_id === found.access_code_id))
  },
  '/access_codes/unmanaged/convert_to_managed': async (call) => {
    const found = await foundOn(device_id)
    await call({ access_code_id: found.access_code_id })
    await until('the code is managed', async () => (await client.accessCodes.list({ device_id })).some((code) => code.access_code_id === found.access_code_id))
  },
  '/access_codes/unmanaged/delete': async (call) => {
    const { access_code_id } = await foundOn(device_id)
    await call({ access_code_id })
    await isGone('the code', () => client.accessCodes.unmanaged.get({ access_code_id }))
  },
}
