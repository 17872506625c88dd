// Provides what the guide's receiver leaves to its reader: a queue. Replaces the guide's port by a free one.
// Prints lines of JSON: {port}, then each queued event.
import { Server } from 'node:net'

const say = (object) => console.log(JSON.stringify(object))
const listen = Server.prototype.listen
Server.prototype.listen = function () {
  return listen.call(this, 0, '127.0.0.1', () => say({ port: this.address().port }))
}
globalThis.queue = say
