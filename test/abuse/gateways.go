package abuse

import (
	"bufio"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

// gateway is a zwave-js-server, which can misbehave.
func (f *attackerProcess) gateway(w http.ResponseWriter, r *http.Request, how string) {
	ctx := f.ctx
	if how == "handshake" && f.misbehaving.Load() {
		f.handshake(w, r)
		return
	}
	c, err := websocket.Accept(w, r, nil)
	if err != nil {
		return
	}
	defer c.CloseNow()         //nolint:errcheck // the attack ends the connection
	if !f.misbehaving.Load() { // it misbehaves after a reconnect
		go func() {
			for !f.misbehaving.Load() && f.rest(r.Context(), 50*time.Millisecond) {
				continue
			}
			c.CloseNow() //nolint:errcheck // whatever was on its way
		}()
	}
	send := func(text string) error { return c.Write(ctx, websocket.MessageText, []byte(text)) }
	version := "15"
	if how == "hello" && f.misbehaving.Load() {
		f.hits.Add(1)
		version = strings.Repeat("1", 15_000_000)
	}
	if send(`{"type":"version","homeId":7,"driverVersion":"`+version+
		`","serverVersion":"3","minSchemaVersion":0,"maxSchemaVersion":44}`) != nil {
		return
	}
	for {
		_, data, err := c.Read(ctx)
		if err != nil {
			return
		}
		var command struct {
			ID      string `json:"messageId"`
			Command string `json:"command"`
		}
		_ = json.Unmarshal(data, &command) // from the server
		result := `{"type":"result","success":true,"messageId":"` + command.ID + `","result":{"state":{"nodes":[`
		if command.Command != "start_listening" || !f.misbehaving.Load() {
			if send(result+`]}}}`) != nil {
				return
			}
			continue
		}
		f.flood(ctx, c, how, result, send)
		return
	}
}

func (f *attackerProcess) flood(ctx context.Context, c *websocket.Conn, how, result string, send func(string) error) {
	f.hits.Add(1)
	block := strings.Repeat("a", 64<<10)
	switch how {
	case "endless-frame":
		w, err := c.Writer(ctx, websocket.MessageText)
		if err == nil {
			_, err = io.WriteString(w, `{"type":"`)
		}
		for err == nil && f.rest(ctx, pace) {
			_, err = io.WriteString(w, block)
		}
	case "many-nodes":
		_ = send(result + repeated(`{"nodeId":%d}`, 500_000) + `]}}}`)
	case "nulls":
		_ = send(result + strings.Repeat("null,", 2_900_000) + `null]}}}`)
	case "big-frames":
		text := `{"type":"event","event":{"source":"node","event":"value updated","nodeId":3,"args":{"newValue":"` +
			strings.Repeat("a", 14_000_000) + `"}}}`
		for send(text) == nil && f.rest(ctx, 10*time.Millisecond) {
			continue
		}
	case "names":
		node := `{"type":"event","event":{"source":"controller","event":"node added","node":` +
			`{"nodeId":%d,"ready":true,"manufacturerId":1,"name":"` + strings.Repeat("n", 300_000) +
			`","endpoints":[{"index":0,"commandClasses":[{"id":98,"version":1},{"id":99,"version":1}]}],"values":[` +
			repeated(
				`{"commandClass":99,"endpoint":0,"property":"userCode","propertyKey":%d,"value":"`+
					strings.Repeat("1", 100)+`"}`,
				3000,
			) + `]}}}`
		err := send(result + `]}}}`)
		for n := 1; err == nil && f.rest(ctx, 10*time.Millisecond); n++ {
			err = send(fmt.Sprintf(node, n))
		}
	case "deep-frames":
		for send(strings.Repeat("[", 1_000_000)) == nil && f.rest(ctx, 10*time.Millisecond) {
			continue
		}
	default:
		_ = send(result + `]}}}`)
		text := `{"type":"event","event":{"source":"node","event":"value updated","nodeId":3,` +
			`"args":{"commandClass":99,"newValue":"` + strings.Repeat("a", 1000) + `"}}}`
		for n := 0; send(text) == nil; n++ {
			if n%20 == 19 && !f.rest(ctx, pace) {
				return
			}
		}
	}
	f.rest(ctx, time.Hour)
}

// brokers implements the part of MQTT 5 that a subscription needs.
func (f *attackerProcess) brokers(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go f.broker(c)
	}
}

// handshake accepts WebSocket in an endless header.
func (f *attackerProcess) handshake(w http.ResponseWriter, r *http.Request) {
	f.hits.Add(1)
	raw("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n", "X-A: "+
		strings.Repeat("a", 60_000)+"\r\n", time.Millisecond)(f, w, r)
}

// webBroker is a broker over WebSocket.
func (f *attackerProcess) webBroker(w http.ResponseWriter, r *http.Request, how string) {
	if how == "handshake" && f.misbehaving.Load() {
		f.handshake(w, r)
		return
	}
	c, err := websocket.Accept(w, r, &websocket.AcceptOptions{Subprotocols: []string{"mqtt"}})
	if err != nil {
		return
	}
	c.SetReadLimit(-1)
	f.broker(websocket.NetConn(r.Context(), c, websocket.MessageBinary))
}

func (f *attackerProcess) broker(c net.Conn) {
	defer c.Close() //nolint:errcheck // it may be closed already
	r := bufio.NewReader(c)
	for {
		kind, err := r.ReadByte()
		if err != nil {
			return
		}
		size, err := binary.ReadUvarint(r) // the same encoding as in MQTT
		if err != nil || size > 1<<20 {
			return
		}
		packet := make([]byte, size)
		if _, err := io.ReadFull(r, packet); err != nil {
			return
		}
		switch kind >> 4 {
		case 1: // CONNECT
			c.Write([]byte{0x20, 3, 0, 0, 0}) //nolint:errcheck // shows next
		case 8: // SUBSCRIBE
			c.Write([]byte{0x90, 4, packet[0], packet[1], 0, 0}) //nolint:errcheck // shows next
			topic := string(packet[5 : 5+int(binary.BigEndian.Uint16(packet[3:5]))])
			go f.publish(c, strings.TrimSuffix(topic, "/#"))
		case 12: // PINGREQ
			c.Write([]byte{0xd0, 0}) //nolint:errcheck // shows next
		case 14:
			return
		}
	}
}

// publication returns a PUBLISH packet that announces size bytes.
func publication(topic string, payload []byte, size int) []byte {
	b := binary.AppendUvarint([]byte{0x30}, uint64(2+len(topic)+1+size))
	b = binary.BigEndian.AppendUint16(b, uint16(len(topic)))
	return append(append(append(b, topic...), 0), payload...)
}

func (f *attackerProcess) publish(c net.Conn, how string) {
	devices := how + "/bridge/devices"
	whole := func(topic, text string) error {
		_, err := c.Write(publication(topic, []byte(text), len(text)))
		return err
	}
	if whole(how+"/bridge/state", `{"state":"online"}`) != nil || whole(how+"/bridge/info", `{"config":{}}`) != nil ||
		whole(devices, `[]`) != nil {
		return
	}
	for !f.misbehaving.Load() {
		<-time.After(50 * time.Millisecond)
	}
	f.hits.Add(1)
	ctx := f.ctx
	switch how {
	case "endless-frame":
		_, err := c.Write(publication(devices, nil, 268_000_000))
		for block := []byte(strings.Repeat("a", 64<<10)); err == nil && f.rest(ctx, pace); {
			_, err = c.Write(block)
		}
	case "many-nodes":
		_ = whole(devices, "["+repeated(`{"ieee_address":"0x%d"}`, 400_000)+"]")
	case "nulls":
		_ = whole(devices, "["+strings.Repeat("null,", 2_900_000)+"null]")
	case "big-frames":
		for whole(devices, `[{"ieee_address":"`+strings.Repeat("a", 14_000_000)+`"}]`) == nil &&
			f.rest(ctx, 10*time.Millisecond) {
			continue
		}
	case "deep-frames":
		for whole(devices, strings.Repeat("[", 1_000_000)) == nil && f.rest(ctx, 10*time.Millisecond) {
			continue
		}
	case "handshake": // it misbehaves after a reconnect
		c.Close() //nolint:errcheck // it may be closed already
		return
	case "hello":
		for whole(how+"/bridge/info", `{"version":"`+strings.Repeat("1", 250_000)+`","config":{}}`) == nil &&
			f.rest(ctx, 10*time.Millisecond) {
			continue
		}
	case "names":
		for n := 0; whole(
			fmt.Sprint(how, "/", n, strings.Repeat("n", 1000), "/availability"),
			`{"state":"online"}`,
		) == nil; n++ {
			if n%20 == 19 && !f.rest(ctx, pace) {
				return
			}
		}
	default:
		for n := 0; whole(how+"/lock"+string(rune('a'+n%26))+
			strings.Repeat("x", n%1000), `{"state":"LOCK"}`) == nil; n++ {
			if n%20 == 19 && !f.rest(ctx, pace) {
				return
			}
		}
	}
	f.rest(ctx, time.Hour)
}
