package api

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"net/http"
)

// Reads answers reads of single objects out of list pages, so that reading all objects of a list costs a few
// requests instead of one each. What it answers is at most a minute old, and older than no write that was made
// through the same client.
//
// Its methods answer nil where a list does not tell: because the object is not on it, the server does not
// list, or this process has written to the object or its device. Then the object itself has to be asked for. What
// waits for a change must not use it at all.
type Reads struct {
	codes     *pages[AccessCode]
	unmanaged *pages[UnmanagedAccessCode]
	webhooks  *pages[Webhook]
}

// NewReads makes the Reads of a client, and has the client tell it of every write from now on.
func NewReads(client *Client) *Reads {
	r := &Reads{
		codes:     newPages(client.AccessCodes, func(c *AccessCode) (string, string) { return c.DeviceID, c.AccessCodeID }),
		unmanaged: newPages(client.UnmanagedAccessCodes, func(c *UnmanagedAccessCode) (string, string) { return c.DeviceID, c.AccessCodeID }),
		webhooks: newPages(func(ctx context.Context, _ string) iter.Seq2[Webhook, error] { return client.Webhooks(ctx) },
			func(w *Webhook) (string, string) { return "", w.WebhookID }),
	}
	client.Client = noticing{client.Client, r}
	return r
}

// AccessCode is a managed code of a device as its list has it, or nil.
func (r *Reads) AccessCode(ctx context.Context, deviceID, id string) *AccessCode {
	if deviceID == "" {
		return nil // servers list by device only
	}
	return r.codes.find(ctx, deviceID, id)
}

// UnmanagedAccessCode is an unmanaged code of a device as its list has it, or nil.
func (r *Reads) UnmanagedAccessCode(ctx context.Context, deviceID, id string) *UnmanagedAccessCode {
	if deviceID == "" {
		return nil
	}
	return r.unmanaged.find(ctx, deviceID, id)
}

// AccessCodesOn are the managed codes of a device, in no order; false where its list does not tell.
func (r *Reads) AccessCodesOn(ctx context.Context, deviceID string) ([]AccessCode, bool) {
	return r.codes.all(ctx, deviceID)
}

// UnmanagedAccessCodesOn are the unmanaged codes of a device, in no order; false where its list does not tell.
func (r *Reads) UnmanagedAccessCodesOn(ctx context.Context, deviceID string) ([]UnmanagedAccessCode, bool) {
	return r.unmanaged.all(ctx, deviceID)
}

// Webhook is a webhook as the list has it, or nil.
func (r *Reads) Webhook(ctx context.Context, id string) *Webhook { return r.webhooks.find(ctx, "", id) }

func (r *Reads) wrote(names []string) {
	r.codes.wrote(names)
	r.unmanaged.wrote(names)
	r.webhooks.wrote(names)
}

// noticing tells reads of each write when it is over, however it has ended.
type noticing struct {
	next  HttpRequestDoer
	reads *Reads
}

func (n noticing) Do(req *http.Request) (*http.Response, error) {
	if !isRead(req.URL.Path) {
		names := namesIn(req)
		defer func() { n.reads.wrote(names) }()
	}
	return n.next.Do(req)
}

// namesIn are the identifiers of what a request writes to.
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
