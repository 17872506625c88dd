// Verifies messages with the package that receivers use. Standard input is a JSON array of {secret, body, headers},
// body in base64; standard output an array of {event_type} or {error}, in the same order.
import { SeamWebhook } from '@seamapi/webhook'
import { readFileSync } from 'node:fs'

const verify = ({ secret, body, headers }) => {
  try {
    const event = new SeamWebhook(secret).verify(Buffer.from(body, 'base64').toString('utf8'), headers)
    return { event_type: event.event_type }
  } catch (error) {
    return { error: `${error.name}: ${error.message}` }
  }
}

console.log(JSON.stringify(JSON.parse(readFileSync(0, 'utf8')).map(verify)))
