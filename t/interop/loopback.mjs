// Imported before a program that would listen on all addresses of the machine
// (node --import): it listens on 127.0.0.1.

import { Server } from "node:net";

const listen = Server.prototype.listen;

Server.prototype.listen = function (port, ...rest) {
  const host = typeof rest[0] === "string" ? [] : ["127.0.0.1"];
  return listen.call(this, port, ...host, ...rest);
};
