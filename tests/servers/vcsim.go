// vcsim: a vCenter for tests. govmomi's simulator does the work; this program gives its hosts and
// virtual machines the names that a test wants, asks for a password, lets sessions expire, counts
// requests, and has a door of its own by which a test is the vSphere administrator.
//
// It reads {"hosts": {"esx-1": ["vm-1", "vm-2"]}} from standard input, prints its URL, and ends
// when standard input does. tests/servers/vcsim-build builds it.
package main

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"regexp"
	"sort"
	"strings"
	"sync"

	"github.com/vmware/govmomi/simulator"
	"github.com/vmware/govmomi/vim25/mo"
	"github.com/vmware/govmomi/vim25/types"
)

type layout struct {
	Hosts map[string][]string `json:"hosts"`
}

var (
	user     = flag.String("user", "drydock", "who may log in")
	password = flag.String("password", "harbour", "and with what")
	cert     = flag.String("cert", "", "certificate of the server, PEM")
	key      = flag.String("key", "", "its key, PEM")
	address  = flag.String("listen", "127.0.0.1:0", "where to listen")

	method      = regexp.MustCompile(`<(?:\w+:)?Body[^>]*>\s*<(?:\w+:)?(\w+)`)
	userText    = regexp.MustCompile(`<userName>([^<]*)</userName>`)
	passText    = regexp.MustCompile(`<password>([^<]*)</password>`)
	lock        sync.Mutex
	requests    = map[string]int{}
	logins      = 0
	generation  = 0                // of sessions; they expire together
	sessionBorn = map[string]int{} // cookie → generation
)

func fault(w http.ResponseWriter, name string) {
	w.Header().Set("Content-Type", "text/xml; charset=utf-8")
	w.WriteHeader(http.StatusInternalServerError)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>
<soapenv:Envelope xmlns:soapenv="http://schemas.xmlsoap.org/soap/envelope/" xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">
<soapenv:Body><soapenv:Fault><faultcode>ServerFaultCode</faultcode><faultstring>%s</faultstring>
<detail><%sFault xmlns="urn:vim25" xsi:type="%s"/></detail></soapenv:Fault></soapenv:Body></soapenv:Envelope>`, name, name, name)
}

// recorder notes the cookie that a login hands out.
type recorder struct{ http.ResponseWriter }

func (r recorder) WriteHeader(status int) {
	for _, line := range r.Header()["Set-Cookie"] {
		if strings.HasPrefix(line, "vmware_soap_session=") {
			lock.Lock()
			sessionBorn[strings.SplitN(strings.TrimPrefix(line, "vmware_soap_session="), ";", 2)[0]] = generation
			lock.Unlock()
		}
	}
	r.ResponseWriter.WriteHeader(status)
}

func (r recorder) Write(b []byte) (int, error) { return r.ResponseWriter.Write(b) }

func guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		name := "?"
		if m := method.FindSubmatch(body); m != nil {
			name = string(m[1])
		}
		lock.Lock()
		requests[name]++
		born, known := -1, false
		if c, err := r.Cookie("vmware_soap_session"); err == nil {
			born, known = sessionBorn[c.Value]
		}
		alive := known && born == generation
		lock.Unlock()
		switch name {
		case "RetrieveServiceContent":
		case "Login":
			u, p := userText.FindSubmatch(body), passText.FindSubmatch(body)
			if u == nil || p == nil || string(u[1]) != *user || string(p[1]) != *password {
				fault(w, "InvalidLogin")
				return
			}
			lock.Lock()
			logins++
			lock.Unlock()
			r.Header.Del("Cookie") // the simulator refuses a login by somebody who has a session
		default:
			if !alive {
				fault(w, "NotAuthenticated")
				return
			}
		}
		next.ServeHTTP(recorder{w}, r)
	})
}

// The objects of the simulator do not change while it runs, apart from their properties.
var (
	allHosts    []*simulator.HostSystem
	allMachines []*simulator.VirtualMachine
)

func hosts() []*simulator.HostSystem        { return allHosts }
func machines() []*simulator.VirtualMachine { return allMachines }

// find fills the lists above.
func find() {
	dc := simulator.Map.Any("Datacenter").(*simulator.Datacenter)
	for _, child := range simulator.Map.Get(dc.HostFolder).(*simulator.Folder).ChildEntity {
		for _, ref := range simulator.Map.Get(child).(*mo.ComputeResource).Host {
			h := simulator.Map.Get(ref).(*simulator.HostSystem)
			allHosts = append(allHosts, h)
			for _, vm := range h.Vm {
				allMachines = append(allMachines, simulator.Map.Get(vm).(*simulator.VirtualMachine))
			}
		}
	}
}

func setPower(vm *simulator.VirtualMachine, power types.VirtualMachinePowerState) {
	simulator.Map.WithLock(vm, func() {
		vm.Runtime.PowerState = power
		vm.Summary.Runtime.PowerState = power
	})
}

// control is the administrator's door.
func control(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	switch strings.TrimPrefix(r.URL.Path, "/control/") {
	case "maintenance":
		for _, h := range hosts() {
			if h.Name == q.Get("host") {
				h := h
				simulator.Map.WithLock(h, func() { h.Runtime.InMaintenanceMode = q.Get("on") == "true" })
			}
		}
	case "power":
		for _, vm := range machines() {
			if vm.Name == q.Get("vm") {
				setPower(vm, types.VirtualMachinePowerState(q.Get("state")))
			}
		}
	case "expire":
		lock.Lock()
		generation++
		lock.Unlock()
	case "password":
		lock.Lock()
		*password = q.Get("is")
		lock.Unlock()
	}
	state := map[string]interface{}{}
	power, mode := map[string]string{}, map[string]bool{}
	for _, vm := range machines() {
		vm := vm
		simulator.Map.WithLock(vm, func() { power[vm.Name] = string(vm.Runtime.PowerState) })
	}
	for _, h := range hosts() {
		h := h
		simulator.Map.WithLock(h, func() { mode[h.Name] = h.Runtime.InMaintenanceMode })
	}
	lock.Lock()
	defer lock.Unlock()
	state["power"], state["maintenance"], state["requests"], state["logins"] = power, mode, requests, logins
	_ = json.NewEncoder(w).Encode(state)
}

// arrange gives hosts and machines their names, and removes the machines that are too many.
func arrange(want layout) {
	names := make([]string, 0, len(want.Hosts))
	for name := range want.Hosts {
		names = append(names, name)
	}
	sort.Strings(names)
	for i, h := range hosts() {
		h.Name = names[i]
		h.Summary.Config.Name = names[i]
		h.Config.Product.Version = "8.0.2"
		for j, ref := range h.Vm {
			vm := simulator.Map.Get(ref).(*simulator.VirtualMachine)
			if j >= len(want.Hosts[names[i]]) {
				vm.Name = fmt.Sprintf("spare-%d-%d", i, j)
				continue
			}
			vm.Name = want.Hosts[names[i]][j]
			vm.Config.Name = vm.Name
			vm.Summary.Config.Name = vm.Name
		}
	}
}

func main() {
	flag.Parse()
	log.SetOutput(io.Discard) // of the simulator
	decoder := json.NewDecoder(os.Stdin)
	var want layout
	if err := decoder.Decode(&want); err != nil {
		fmt.Fprintln(os.Stderr, "vcsim:", err)
		os.Exit(2)
	}
	model := simulator.VPX()
	model.Cluster, model.ClusterHost, model.Host, model.Machine = 0, 0, len(want.Hosts), 1
	for _, vms := range want.Hosts {
		if len(vms) > model.Machine {
			model.Machine = len(vms)
		}
	}
	if err := model.Create(); err != nil {
		fmt.Fprintln(os.Stderr, "vcsim:", err)
		os.Exit(1)
	}
	find()
	arrange(want)
	model.Service.RegisterSDK(simulator.Map)
	mux := http.NewServeMux()
	mux.Handle("/sdk", guard(model.Service.ServeMux))
	mux.HandleFunc("/control/", control)
	listener, err := net.Listen("tcp", *address)
	if err != nil {
		fmt.Fprintln(os.Stderr, "vcsim:", err)
		os.Exit(1)
	}
	scheme := "http"
	if *cert != "" {
		pair, err := tls.LoadX509KeyPair(*cert, *key)
		if err != nil {
			fmt.Fprintln(os.Stderr, "vcsim:", err)
			os.Exit(1)
		}
		listener = tls.NewListener(listener, &tls.Config{Certificates: []tls.Certificate{pair}})
		scheme = "https"
	}
	fmt.Printf("%s://%s\n", scheme, listener.Addr())
	go func() { _ = http.Serve(listener, mux) }()
	_, _ = io.Copy(io.Discard, io.MultiReader(decoder.Buffered(), os.Stdin))
	model.Remove()
}
