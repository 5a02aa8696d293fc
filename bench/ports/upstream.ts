import { createServer } from 'node:http';

/** The program in the sandbox: a small response to every request, and WebSockets that stay open and send nothing. */
const server = createServer((_request, response) => {
  response.setHeader('Content-Type', 'text/plain');
  response.end('hello');
});
server.on('upgrade', (_request, socket) => {
  socket.on('error', () => socket.destroy());
  socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
});
server.listen(Number(process.env['PORT']), '127.0.0.1');
