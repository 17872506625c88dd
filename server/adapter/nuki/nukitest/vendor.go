package nukitest

import (
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter/nuki"
)

// Vendor returns the vendor with the URL of the fake, and with other intervals.
func (s *Server) Vendor(timing nuki.Timing) adapter.Vendor {
	v := nuki.VendorAt(s.URL)
	set := func(c adapter.Connection, err error) (adapter.Connection, error) {
		if n, ok := c.(*nuki.Connection); ok {
			n.Timing = timing
		}
		return c, err
	}
	create, connect, tokens := v.New, v.Login.Connect, v.Login.OAuth.Connect
	v.New = func() adapter.Connection {
		c, _ := set(create(), nil)
		return c
	}
	v.Login.Connect = func(entered map[string]string) (adapter.Connection, error) { return set(connect(entered)) }
	v.Login.OAuth.Connect = func(t adapter.Tokens) (adapter.Connection, error) { return set(tokens(t)) }
	return v
}
