// Steps of action attempts and events.
import { deepEqual, equal, ok } from 'node:assert/strict'
import { client, codeOn, setting, until } from './setting.mjs'

const device_id = setting.devices.august
const since = '2020-01-01T00:00:00Z'

export const attemptsAndEvents = {
  '/action_attempts/get': async (call) => {
    const { action_attempt_id } = await client.locks.lockDoor({ device_id })
    const attempt = await call({ action_attempt_id })
    equal(attempt.action_attempt_id, action_attempt_id)
    equal(attempt.status, 'success')
  },
  '/action_attempts/list': async (call) => {
    const { action_attempt_id } = await client.locks.lockDoor({ device_id })
    deepEqual((await call({ action_attempt_ids: [action_attempt_id] })).map((attempt) => attempt.action_attempt_id), [action_attempt_id])
  },
  '/events/list': async (call) => {
    const { access_code_id } = await codeOn(device_id)
    const event_types = ['access_code.created', 'access_code.set_on_device']
    await until('both events are listed', async () => (await call({ since, access_code_id, event_types })).length === 2)
    const [event] = await call({ between: [since, new Date(Date.now() + 60_000).toISOString()], access_code_id, event_type: 'access_code.created' })
    equal(event.access_code_id, access_code_id)
    equal(event.device_id, device_id)
  },
  '/events/get': async (call) => {
    const { access_code_id } = await codeOn(device_id)
    const [event] = await client.events.list({ since, access_code_id, event_type: 'access_code.created' })
    const got = await call({ event_id: event.event_id })
    deepEqual(got, event)
    ok(got.workspace_id === setting.workspaceId)
  },
}
