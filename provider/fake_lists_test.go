package provider

import (
	"maps"
	"net/http"
	"slices"
)

// lists are the operations by which a workspace is looked through.
func (f *fake) lists() map[string]fakeHandler {
	return map[string]fakeHandler{
		"/devices/get": f.getDevice, "/devices/list_device_providers": f.listProviders,
		"/webhooks/list": f.listWebhooks, "/access_codes/list": f.listCodes, "/connect_webviews/get": f.getWebview,
	}
}

func (f *fake) getDevice(w http.ResponseWriter, r *http.Request, body map[string]any) {
	for _, device := range f.devices {
		if device["device_id"] == body["device_id"] {
			answer(map[string]any{"device": device})(w, r)
			return
		}
	}
	answerError(http.StatusNotFound, "device_not_found", "Device not found")(w, r)
}

// getWebview knows no page: what they are like is tried with the server of this project.
func (f *fake) getWebview(w http.ResponseWriter, r *http.Request, _ map[string]any) {
	f.answerNotFound("connect_webview_not_found", "Could not find a connect webview")(w, r)
}

func (f *fake) listProviders(w http.ResponseWriter, r *http.Request, _ map[string]any) {
	answer(map[string]any{"device_providers": []map[string]any{
		{
			"device_provider_name": "august",
			"display_name":         "August",
			"image_url":            "",
			"provider_categories":  []string{"stable"},
			"can_remotely_unlock":  true,
		},
	}})(w, r)
}

func (f *fake) listWebhooks(w http.ResponseWriter, r *http.Request, _ map[string]any) {
	webhooks := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(f.webhooks)) {
		webhooks = append(webhooks, f.webhookJSON(id, false))
	}
	answer(map[string]any{"webhooks": webhooks})(w, r)
}

func (f *fake) listCodes(w http.ResponseWriter, r *http.Request, body map[string]any) {
	f.answerPage(w, r, "access_codes", f.codesThat(body, true), body)
}

func (f *fake) listUnmanaged(w http.ResponseWriter, r *http.Request, body map[string]any) {
	f.answerPage(w, r, "access_codes", f.codesThat(body, false), body)
}

// codesThat are the codes of the device that is asked for.
func (f *fake) codesThat(body map[string]any, managed bool) []map[string]any {
	codes := []map[string]any{}
	for _, id := range slices.Sorted(maps.Keys(f.codes)) {
		if c := f.codes[id]; (c.managed == managed || managed && f.mixesCodes) &&
			(f.listsAllDevices || c.device == body["device_id"]) {
			codes = append(codes, f.codeJSON(id))
		}
	}
	return codes
}

// refuseCodes answers everything that the next look at a code asks for.
func (f *fake) refuseCodes(refusal http.HandlerFunc) {
	for _, path := range []string{"/access_codes/list", "/access_codes/unmanaged/list", "/access_codes/get"} {
		f.then(path, refusal)
	}
}
