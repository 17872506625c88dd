// A delivery to a webhook, verified by the client's own verifier. test/webhookguide has more cases.
import { equal, throws } from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, describe, it } from 'node:test'
import { client, codeOn, seam, setting } from './setting.mjs'

describe('deliveries', () => {
  let receiver
  after(() => {
    receiver.closeAllConnections()
    receiver.close()
  })

  it('are verified', async () => {
    let take
    const delivered = new Promise((resolve) => (take = resolve))
    receiver = createServer(async (request, response) => {
      const parts = []
      for await (const part of request) parts.push(part)
      response.writeHead(204).end()
      take({ body: Buffer.concat(parts).toString('utf8'), headers: request.headers })
    }).listen(0, '127.0.0.1')
    await once(receiver, 'listening')
    const webhook = await client.webhooks.create({ url: `http://127.0.0.1:${receiver.address().port}/`, event_types: ['access_code.created'] })
    const code = await codeOn(setting.devices.august)
    const { body, headers } = await delivered
    const event = new seam.SeamWebhook(webhook.secret).verify(body, headers)
    equal(event.event_type, 'access_code.created')
    equal(event.access_code_id, code.access_code_id)
    throws(() => new seam.SeamWebhook(webhook.secret).verify(`${body} `, headers))
    await client.webhooks.delete({ webhook_id: webhook.webhook_id })
  })
})
