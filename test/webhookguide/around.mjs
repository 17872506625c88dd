// What the guide's receiver leaves to its reader: a queue. And a port that is free, instead of the guide's.
// Standard output has a line of JSON for each: {port}, then an event each time one is queued.
import { Server } from 'node:net'

const say = (object) => console.log(JSON.stringify(object))
const listen = Server.prototype.listen
Server.prototype.listen = function () {
  return listen.call(this, 0, '127.0.0.1', () => say({ port: this.address().port }))
}
globalThis.queue = say
