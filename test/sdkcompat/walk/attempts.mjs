// The client's waiting for action attempts, and its errors about them.
import { equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { client, refusal, seam, setting, until } from './setting.mjs'

const device_id = setting.devices.nuki
const plain = seam.Seam.fromApiKey(setting.apiKey, { endpoint: setting.endpoint })
const online = (wanted) =>
  until('the device is as it was asked to be', async () => (await client.devices.get({ device_id })).properties.online === wanted)

describe('action attempts', () => {
  it('are waited for by default', async () => {
    const attempt = await plain.locks.unlockDoor({ device_id })
    equal(attempt.status, 'success')
    equal(attempt.error, null)
  })

  it('are pending without waiting', async () => {
    const attempt = await client.locks.lockDoor({ device_id }, { waitForActionAttempt: false })
    equal(attempt.status, 'pending')
    equal(attempt.result, null)
    const later = await client.actionAttempts.get({ action_attempt_id: attempt.action_attempt_id })
    equal(later.status, 'success')
  })

  it('take too long', async () => {
    // The interval between two requests is longer than its timeout.
    const error = await refusal(client.locks.lockDoor({ device_id }, { waitForActionAttempt: { timeout: 0, pollingInterval: 2_000 } }))
    ok(seam.isSeamActionAttemptTimeoutError(error), error.stack)
    ok(error instanceof seam.SeamActionAttemptTimeoutError)
    equal(error.actionAttempt.status, 'pending')
    equal((await client.actionAttempts.get({ action_attempt_id: error.actionAttempt.action_attempt_id })).status, 'success')
  })

  it('fail', async () => {
    await client.devices.simulate.disconnect({ device_id })
    await online(false)
    const error = await refusal(client.locks.lockDoor({ device_id }))
    ok(seam.isSeamActionAttemptFailedError(error), error.stack)
    ok(error instanceof seam.SeamActionAttemptFailedError)
    equal(error.code, 'device_offline')
    equal(error.actionAttempt.status, 'error')
    equal(error.message, error.actionAttempt.error.message)
    await client.devices.simulate.connect({ device_id })
    await online(true)
  })
})
