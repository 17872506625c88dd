import { deepEqual, equal, ok } from 'node:assert/strict'
import { client, isGone } from './setting.mjs'

const webview = async () => await client.connectWebviews.create({ accepted_providers: ['august'] })

export const connectWebviews = {
  '/connect_webviews/create': async (call) => {
    const made = await call({ accepted_providers: ['august'], custom_metadata: { flat: '12' }, custom_redirect_url: 'https://app.example/back' })
    deepEqual(made.accepted_providers, ['august'])
    deepEqual(made.custom_metadata, { flat: '12' })
    equal(made.status, 'pending')
    equal((await fetch(made.url)).status, 200)
  },
  '/connect_webviews/get': async (call) => {
    const made = await webview()
    deepEqual(await call({ connect_webview_id: made.connect_webview_id }), made)
  },
  '/connect_webviews/list': async (call) => {
    const made = await webview()
    ok((await call({})).some((found) => found.connect_webview_id === made.connect_webview_id))
    deepEqual(await call({ custom_metadata_has: { no: 'such' } }), [])
  },
  '/connect_webviews/delete': async (call) => {
    const { connect_webview_id } = await webview()
    await call({ connect_webview_id })
    await isGone('the webview', () => client.connectWebviews.get({ connect_webview_id }))
  },
}
