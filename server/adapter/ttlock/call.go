package ttlock

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/vendorhttp"
)

// pathWords are the segments of the paths, none of which is an identifier.
var pathWords = []string{
	"add", "change", "delete", "detail", "gateway", "get", "keyboardPwd", "list", "listByLock", "listKeyboardPwd",
	"listLock", "lock", "lockRecord", "oauth2", "queryOpenState", "setAutoLockTime", "token", "unlock", "v3",
	"wifiLock",
}

// get sends a GET request and decodes the response into out.
func (a *Adapter) get(ctx context.Context, path string, params url.Values, out any) error {
	return a.call(ctx, vendorhttp.Call{Path: path}, params, out)
}

// write sends a request that changes something. out may be nil.
func (a *Adapter) write(ctx context.Context, path string, params url.Values, out any) error {
	return a.call(ctx, vendorhttp.Call{Method: http.MethodPost, Path: path, Write: true}, params, out)
}

// call sends a request with the account's token, and again with another token if TTLock refuses that one.
func (a *Adapter) call(ctx context.Context, c vendorhttp.Call, params url.Values, out any) error {
	token, err := a.tokens.Token(ctx)
	for try := 0; err == nil; try++ {
		signed := maps.Clone(params)
		signed.Set("clientId", a.client.ID)
		signed.Set("accessToken", token)
		signed.Set("date", strconv.FormatInt(a.now().UnixMilli(), 10))
		if c.Method == http.MethodPost {
			c.Form = signed
		} else {
			c.Query = signed
		}
		err = a.send(ctx, c, out)
		if code := codeOf(err); try > 0 || code != codeNoToken && code != codeTokenRevoked {
			break
		}
		token, err = a.tokens.Renew(ctx, token)
	}
	if err != nil && adapter.ClassOf(err) == adapter.AuthRevoked {
		a.known.expire()
	}
	return err
}

// send sends a request. TTLock answers 200 and an errcode to what it refuses.
func (a *Adapter) send(ctx context.Context, c vendorhttp.Call, out any) error {
	return a.http.Do(ctx, c, func(r vendorhttp.Response) error {
		var head struct {
			Code    number `json:"errcode"`
			Message string `json:"errmsg"`
		}
		switch err := json.Unmarshal(r.Data, &head); {
		case err == nil && head.Code != 0:
			return a.refused(ctx, c, r, int(head.Code), head.Message)
		case !r.OK():
			return a.http.Refusal(c, r, "")
		case out != nil:
			return vendorhttp.Decode(c, r.Data, out)
		case err != nil:
			return vendorhttp.Decode(c, r.Data, &head)
		}
		return nil
	})
}

// number is an integer of a response. Some fields are integers in the documentation, and strings or booleans in its
// samples. Any other value is 0.
type number int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	*n = 0
	if text == "true" {
		*n = 1
	} else if v, err := strconv.ParseInt(text, 10, 64); err == nil {
		*n = number(v)
	}
	return nil
}

// time returns a time in milliseconds, nil for none and for one that JSON cannot show.
func (n number) time() *time.Time {
	const last = 253402300799999 // the end of the year 9999
	if n <= 0 || n > last {
		return nil
	}
	return new(time.UnixMilli(int64(n)).UTC())
}

// maxPages bounds the pages of a list.
const maxPages = 50

// page is the end of a page of a list.
type page struct {
	Pages number `json:"pages"`
}

// listPages reads all pages of a list. Each page has up to size elements. add receives each one.
func listPages[T any](
	ctx context.Context, a *Adapter, path string, params url.Values, size int, add func(T) error,
) error {
	params = maps.Clone(params)
	params.Set("pageSize", strconv.Itoa(size))
	for n := 1; n <= maxPages; n++ {
		params.Set("pageNo", strconv.Itoa(n))
		var got struct {
			page
			List *adapter.List[T] `json:"list"`
		}
		if err := a.get(ctx, path, params, &got); err != nil {
			return err
		}
		if got.List == nil {
			return adapter.Errorf(adapter.Transient, "TTLock's answer to %s has no list", path)
		}
		for _, one := range *got.List {
			if err := add(one); err != nil {
				return err
			}
		}
		if n >= int(got.Pages) {
			return nil
		}
	}
	return adapter.Errorf(adapter.Transient, "the list of %s has more than %d pages", path, maxPages)
}
