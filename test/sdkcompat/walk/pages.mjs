// The client's paginator, to the end of every list with pages.
import { deepEqual, equal, ok } from 'node:assert/strict'
import { describe, it } from 'node:test'
import { guest } from './access_systems.mjs'
import { methodsOf } from './methods.mjs'
import { newIdentity } from './people.mjs'
import { answerOf, client, codeOn, foundOn, isRoute, refusal, setting } from './setting.mjs'

const device_id = setting.devices.schlage

// lists returns, for each list, parameters with more than one page, and creates the items.
const lists = {
  '/acs/entrances/list': async () => ({ limit: 1 }),
  '/acs/users/list': async () => {
    for (let i = 0; i < 3; i++) await guest()
    return { limit: 1 }
  },
  '/acs/users/unmanaged/list': async () => ({ limit: 1 }),
  '/access_codes/list': async () => {
    for (let i = 0; i < 5; i++) await codeOn(device_id, { code: undefined })
    return { device_id, limit: 2 }
  },
  '/access_codes/unmanaged/list': async () => {
    for (let i = 0; i < 3; i++) {
      const { code } = await client.accessCodes.generateCode({ device_id })
      await foundOn(device_id, code)
    }
    return { device_id, limit: 1 }
  },
  '/action_attempts/list': async () => {
    for (let i = 0; i < 3; i++) await client.locks.lockDoor({ device_id })
    return { device_id, limit: 1 }
  },
  '/client_sessions/list': async () => {
    for (let i = 0; i < 3; i++) await client.clientSessions.create({})
    return { without_user_identifier_key: true, limit: 1 }
  },
  '/connect_webviews/list': async () => {
    for (let i = 0; i < 3; i++) await client.connectWebviews.create({})
    return { limit: 1 }
  },
  '/connected_accounts/list': async () => ({ limit: 1 }),
  '/devices/list': async () => ({ limit: 1 }),
  '/devices/unmanaged/list': async () => ({ limit: 1 }),
  '/user_identities/list': async () => {
    for (let i = 0; i < 3; i++) await newIdentity()
    return { limit: 1 }
  },
}

// empty are the lists that never have items here.
const empty = ['/user_identities/unmanaged/list']

const hasPages = (path) => answerOf(path).properties.pagination !== undefined

describe('pages', () => {
  for (const { name, method, request } of methodsOf(client)) {
    if (!isRoute(request.pathname)) continue
    const { pathname, responseKey } = request
    if (request.hasPagination === true) it(`${name} has them`, () => ok(hasPages(pathname)))
    if (!hasPages(pathname) || empty.includes(pathname)) continue
    it(`of ${name}`, async () => {
      ok(lists[pathname], `no list of ${pathname} is paged through`)
      const parameters = await lists[pathname]()
      const key = Object.keys((await method(parameters))[0]).find((field) => field.endsWith('_id') && pathname.replaceAll('/', '_').includes(field.slice(0, -4)))
      const ids = (items) => items.map((item) => item[key])
      const { limit, ...all } = parameters
      const whole = ids(await method(all))
      equal(new Set(whole).size, whole.length)
      ok(whole.length > limit, `${whole.length} ${responseKey} have no second page`)

      if (request.hasPagination === false) { // this client knows only the first page
        deepEqual(ids(await method(parameters)), whole.slice(0, limit))
        return
      }
      const paginator = client.createPaginator(method(parameters))
      deepEqual(ids(await paginator.flattenToArray()), whole)

      const flat = []
      for await (const item of paginator.flatten()) flat.push(item[key])
      deepEqual(flat, whole)

      const paged = []
      for await (const page of paginator) {
        const items = Array.isArray(page[0]) ? page[0] : page
        ok(items.length <= limit)
        paged.push(...ids(items))
      }
      deepEqual(paged, whole)

      const byHand = []
      let [items, page] = await paginator.firstPage()
      for (;;) {
        byHand.push(...ids(items))
        if (!page.hasNextPage) break
        ok(page.nextPageUrl.includes(pathname))
        ;[items, page] = await paginator.nextPage(page.nextPageCursor)
      }
      deepEqual(byHand, whole)
      equal(page.nextPageCursor, null)
    })
  }

  it('are rejected when the parameters have changed', async () => {
    const [, page] = await client.createPaginator(client.devices.list({ limit: 1 })).firstPage()
    const error = await refusal(client.createPaginator(client.devices.list({ limit: 2 })).nextPage(page.nextPageCursor))
    equal(error.code, 'mismatched_page_parameters')
  })
})
