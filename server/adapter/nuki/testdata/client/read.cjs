// Reads an account with an independent client, and prints what the client returns. The address and the token are
// arguments.
const Nuki = require('nuki-web-api')

const main = async () => {
  const [url, token] = process.argv.slice(2)
  const nuki = new Nuki(token, { url })
  const locks = await nuki.getSmartlocks()
  const id = locks[0].smartlockId
  await nuki.setAction(id, 1)
  console.log(JSON.stringify({
    locks,
    lock: await nuki.getSmartlock(id),
    auths: await nuki.getSmartlockAuths({ types: 13 }),
    auths_of_lock: await nuki.getSmartlockAuth(id),
    logs: await nuki.getSmartlockLogs(undefined, { limit: 20 }),
  }))
}

main().catch((error) => {
  console.error(error.message)
  process.exit(1)
})
