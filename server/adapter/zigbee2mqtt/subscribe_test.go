package zigbee2mqtt

import (
	"net"
	"testing"
	"testing/synctest"

	"github.com/eclipse/paho.golang/packets"

	"github.com/deviceaccess/terraform-provider-deviceaccess/server/adapter"
)

// A broker that restarts or hangs before its response has not rejected the user. A rejected user is disconnected
// immediately.
func TestSubscriptionErrors(t *testing.T) {
	t.Parallel()
	answer := func(reason byte) func(*fakeBroker, *packets.Subscribe) {
		return func(b *fakeBroker, p *packets.Subscribe) {
			b.write(&packets.Suback{PacketID: p.PacketID, Reasons: []byte{reason}, Properties: &packets.Properties{}})
		}
	}
	for name, c := range map[string]struct {
		answer func(*fakeBroker, *packets.Subscribe)
		want   adapter.Class // empty: no error
	}{
		"it may":                   {answer(packets.SubackGrantedQoS1), ""},
		"it may not":               {answer(packets.SubackNotauthorized), adapter.AuthRevoked},
		"refused without a reason": {answer(packets.SubackUnspecifiederror), adapter.AuthRevoked},
		"it has too many":          {answer(packets.SubackQuotaexceeded), adapter.GatewayDown},
		"no wildcards":             {answer(packets.SubackWildcardsubscriptionsnotsupported), adapter.GatewayDown},
		"the connection ends":      {func(b *fakeBroker, _ *packets.Subscribe) { b.conn.Close() }, adapter.GatewayDown},
		"it is told to go": {func(b *fakeBroker, _ *packets.Subscribe) {
			b.write(&packets.Disconnect{
				ReasonCode: packets.DisconnectServerShuttingDown,
				Properties: &packets.Properties{},
			})
		}, adapter.GatewayDown},
		"no answer": {func(*fakeBroker, *packets.Subscribe) {}, adapter.GatewayDown},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ours, theirs := net.Pipe()
				b := &fakeBroker{t, theirs}
				go func() {
					defer theirs.Close()
					for {
						p, err := packets.ReadPacket(theirs)
						if err != nil {
							return
						}
						switch p := p.Content.(type) {
						case *packets.Connect:
							b.write(&packets.Connack{Properties: &packets.Properties{}})
						case *packets.Pingreq:
							b.write(&packets.Pingresp{})
						case *packets.Subscribe:
							c.answer(b, p)
						}
					}
				}()
				s, err := converse(t.Context(), Config{Topic: "z"}, broker{host: "broker"}, ours,
					func(string, []byte, bool) {})
				switch {
				case c.want == "" && err != nil, c.want != "" && (err == nil || adapter.ClassOf(err) != c.want):
					t.Errorf("%v, want %q", err, c.want)
				}
				if s != nil {
					s.close()
				}
			})
		})
	}
}
