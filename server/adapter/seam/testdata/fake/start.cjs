// Starts the vendor's test server with its sample devices on 127.0.0.1, and prints its URL and API key. It ends with
// its standard input.
const net = require('node:net')
const { createFake } = require('@seamapi/fake-seam-connect')

// The program listens on all interfaces.
const listen = net.Server.prototype.listen
const opened = new Promise((resolve) => {
  net.Server.prototype.listen = function (...args) {
    const done = args.find((one) => typeof one === 'function')
    return listen.call(this, { port: 0, host: '127.0.0.1' }, () => {
      resolve(this.address().port)
      done?.()
    })
  }
})

process.stdin.resume().on('end', () => process.exit())

const main = async () => {
  const fake = await createFake()
  const seed = await fake.seed()
  await fake.startServer({ port: 0 })
  console.log(JSON.stringify({ url: `http://127.0.0.1:${await opened}`, seed }))
}
main()
