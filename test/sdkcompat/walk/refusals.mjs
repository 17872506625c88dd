// The client's errors, by the server's error responses.
import { deepEqual, equal, match, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { client, codeOn, refusal, seam, setting } from './setting.mjs'

const device_id = setting.devices.nuki
const missingId = '00000000-0000-4000-8000-000000000000'
const requestID = /^[0-9a-f-]{36}$/

describe('errors', () => {
  it('of an unknown key', async () => {
    const stranger = seam.Seam.fromApiKey('seam_test2bMS_94SrGUXuNR2JmJkjtvBQDg5c', { endpoint: setting.endpoint })
    const error = await refusal(stranger.workspaces.get())
    ok(seam.isSeamHttpUnauthorizedError(error), error.stack)
    equal(error.statusCode, 401)
    equal(error.code, 'unauthorized')
    match(error.requestId, requestID)
  })

  it('of a missing resource', async () => {
    for (const [request, code] of [
      [client.devices.get({ device_id: missingId }), 'device_not_found'],
      [client.webhooks.get({ webhook_id: missingId }), 'webhook_not_found'],
      [client.connectedAccounts.get({ connected_account_id: missingId }), 'connected_account_not_found'],
      [client.actionAttempts.get({ action_attempt_id: missingId }), 'action_attempt_not_found'],
      [client.events.get({ event_id: missingId }), 'event_not_found'],
    ]) {
      const error = await refusal(request)
      ok(seam.isSeamHttpApiError(error), error.stack)
      equal(error.statusCode, 404)
      equal(error.code, code)
      match(error.requestId, requestID)
    }
  })

  it('of a field', async () => {
    const error = await refusal(client.accessCodes.create({ device_id, code: 'letters' }))
    ok(seam.isSeamHttpInvalidInputError(error), error.stack)
    ok(seam.isSeamHttpApiError(error))
    equal(error.statusCode, 400)
    equal(error.code, 'invalid_input')
    equal(error.getValidationErrorMessages('code').length, 1)
    deepEqual(error.getValidationErrorMessages('device_id'), [])
    // The older generation lists only their names.
    if ('validationErrors' in error) deepEqual(error.validationErrors.map(({ parameterName }) => parameterName), ['code'])
  })

  it('of several fields', async () => {
    const error = await refusal(client.accessCodes.create({ device_id: 'no id', name: 5 }))
    for (const field of ['device_id', 'name']) equal(error.getValidationErrorMessages(field).length, 1, field)
  })

  it('of a duplicate PIN', async () => {
    const { code } = await codeOn(device_id, { code: '356984' })
    const error = await refusal(client.accessCodes.create({ device_id, code }))
    equal(error.statusCode, 409)
    equal(error.code, 'duplicate_access_code')
  })

  it('of an unknown event type', async () => {
    const error = await refusal(client.webhooks.create({ url: 'https://hooks.example/x', event_types: ['door.sang'] }))
    equal(error.statusCode, 400)
    equal(error.code, 'invalid_event_types')
  })
})
