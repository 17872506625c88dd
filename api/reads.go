package api

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
)

// Reads serves reads of single objects from list pages, so that reading all objects of a list takes a few requests
// instead of one per object. Results are at most a minute old, and never older than the last write through the same
// client.
//
// Its methods return nil if the list cannot be used: the object is not on it, the server does not support the list,
// or the process has written to the object or its device. Callers then read the object itself. Callers that wait for
// a change must not use Reads.
type Reads struct {
	codes     *listCache[AccessCode]
	unmanaged *listCache[UnmanagedAccessCode]
	webhooks  *listCache[Webhook]
	devices   *listCache[Device]
}

// NewReads returns the Reads of a client, and makes the client report each write to it.
func NewReads(client *Client) *Reads {
	r := &Reads{
		codes: newListCache(
			client.AccessCodes,
			func(c *AccessCode) (string, string) { return c.DeviceID, c.AccessCodeID },
		),
		unmanaged: newListCache(
			client.UnmanagedAccessCodes,
			func(c *UnmanagedAccessCode) (string, string) { return c.DeviceID, c.AccessCodeID },
		),
		webhooks: newListCache(
			func(ctx context.Context, _ string) iter.Seq2[Webhook, error] { return client.Webhooks(ctx) },
			func(w *Webhook) (string, string) { return "", w.WebhookID },
		),
		devices: newListCache(
			func(ctx context.Context, _ string) iter.Seq2[Device, error] {
				return client.Devices(ctx, ListDevicesRequest{})
			},
			func(d *Device) (string, string) { return "", d.DeviceID },
		),
	}
	client.Client = invalidating{client.Client, r}
	return r
}

// AccessCode returns a managed code of a device from its list, or nil.
func (r *Reads) AccessCode(ctx context.Context, deviceID, id string) *AccessCode {
	if deviceID == "" {
		return nil // servers list by device only
	}
	return r.codes.find(ctx, deviceID, id)
}

// UnmanagedAccessCode returns an unmanaged code of a device from its list, or nil.
func (r *Reads) UnmanagedAccessCode(ctx context.Context, deviceID, id string) *UnmanagedAccessCode {
	if deviceID == "" {
		return nil
	}
	return r.unmanaged.find(ctx, deviceID, id)
}

// AccessCodesOn returns the managed codes of a device in no particular order, or false if the list cannot be used.
func (r *Reads) AccessCodesOn(ctx context.Context, deviceID string) ([]AccessCode, bool) {
	return r.codes.all(ctx, deviceID)
}

// UnmanagedAccessCodesOn returns the unmanaged codes of a device in no particular order, or false if the list cannot
// be used.
func (r *Reads) UnmanagedAccessCodesOn(ctx context.Context, deviceID string) ([]UnmanagedAccessCode, bool) {
	return r.unmanaged.all(ctx, deviceID)
}

// Webhook returns a webhook from the list, or nil.
func (r *Reads) Webhook(ctx context.Context, id string) *Webhook { return r.webhooks.find(ctx, "", id) }

// Device returns a device from the list of all devices, or nil.
func (r *Reads) Device(ctx context.Context, id string) *Device { return r.devices.find(ctx, "", id) }

// Devices returns all devices in no particular order, or false if their list cannot be used.
func (r *Reads) Devices(ctx context.Context) ([]Device, bool) { return r.devices.all(ctx, "") }

func (r *Reads) invalidate(names []string) {
	r.codes.invalidate(names)
	r.unmanaged.invalidate(names)
	r.webhooks.invalidate(names)
	r.devices.invalidate(names)
}

// invalidating invalidates the cached lists after each write, whether the write succeeds or fails.
type invalidating struct {
	next  HttpRequestDoer
	reads *Reads
}

func (n invalidating) Do(req *http.Request) (*http.Response, error) {
	if !isRead(req.URL.Path) {
		names := namesIn(req)
		defer func() { n.reads.invalidate(names) }()
	}
	return n.next.Do(req)
}

// namesIn returns the identifiers of the resources that a request writes to.
func namesIn(req *http.Request) []string {
	if req.GetBody == nil {
		return nil
	}
	body, err := req.GetBody()
	if err != nil {
		return nil
	}
	defer body.Close()
	encoded, err := io.ReadAll(body)
	if err != nil {
		return nil
	}
	var named struct {
		AccessCodeID  string   `json:"access_code_id"`
		AccessCodeIDs []string `json:"access_code_ids"`
		DeviceID      string   `json:"device_id"`
		DeviceIDs     []string `json:"device_ids"`
		WebhookID     string   `json:"webhook_id"`
	}
	if json.Unmarshal(encoded, &named) != nil {
		return nil
	}
	var names []string
	for _, name := range append(append(named.AccessCodeIDs, named.DeviceIDs...), named.AccessCodeID, named.DeviceID, named.WebhookID) {
		if name != "" {
			names = append(names, name)
		}
	}
	return names
}
