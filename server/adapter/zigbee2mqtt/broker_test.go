package zigbee2mqtt

import (
	"bytes"
	"encoding/json"
	"net"
	"testing"

	"github.com/eclipse/paho.golang/packets"
)

// fakeBroker is a broker whose responses the test defines. Use it with synctest.
type fakeBroker struct {
	*testing.T
	conn net.Conn
}

// connected returns an adapter that is connected to a fake broker. The broker calls answer with each published
// message, sequentially.
func (a *Adapter) connected(t *testing.T, answer func(b *fakeBroker, topic string, payload []byte)) {
	t.Helper()
	ours, theirs := net.Pipe()
	b := &fakeBroker{t, theirs}
	go b.serve(answer)
	s, err := converse(t.Context(), a.config, broker{host: "broker"}, ours, a.receive)
	if err != nil {
		t.Fatal(err)
	}
	a.session = s
	t.Cleanup(s.close)
}

func (b *fakeBroker) serve(answer func(b *fakeBroker, topic string, payload []byte)) {
	defer b.conn.Close()
	for {
		p, err := packets.ReadPacket(b.conn)
		if err != nil {
			return
		}
		switch p := p.Content.(type) {
		case *packets.Connect:
			b.write(&packets.Connack{Properties: &packets.Properties{}})
		case *packets.Subscribe:
			b.write(&packets.Suback{PacketID: p.PacketID, Reasons: []byte{1}, Properties: &packets.Properties{}})
		case *packets.Pingreq:
			b.write(&packets.Pingresp{})
		case *packets.Publish:
			b.write(&packets.Puback{PacketID: p.PacketID, Properties: &packets.Properties{}})
			answer(b, p.Topic, p.Payload)
		}
	}
}

func (b *fakeBroker) write(p packets.Packet) {
	var whole bytes.Buffer // packets are written in parts
	if _, err := p.WriteTo(&whole); err != nil {
		b.Error(err)
	}
	_, _ = b.conn.Write(whole.Bytes()) // a closed connection needs no response
}

func (b *fakeBroker) publish(topic string, payload any) {
	data, err := json.Marshal(payload)
	if err != nil {
		b.Error(err)
	}
	b.write(&packets.Publish{Topic: topic, Payload: data, Properties: &packets.Properties{}})
}

// respond responds to a request with the frame of a lock.
func (b *fakeBroker) respond(what string, request []byte, frame ...int) {
	var asked struct{ Transaction string }
	if err := json.Unmarshal(request, &asked); err != nil {
		b.Error(err)
	}
	b.publish("z/bridge/response/"+what,
		map[string]any{
			"transaction": asked.Transaction, "status": "ok",
			"data": map[string]any{"data": map[string]any{"data": frame}},
		})
}
