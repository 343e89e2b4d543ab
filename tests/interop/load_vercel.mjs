// Load UI messages by the AI SDK's own check, and turn them into what it sends a model; prints the texts of that.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const [file, packages] = process.argv.slice(2);
const { convertToModelMessages, modelMessageSchema, validateUIMessages } = await import(
  createRequire(`${packages}/`).resolve('ai')
);
const messages = readFileSync(file, 'utf8').split('\n').filter(Boolean).map(line => JSON.parse(line));
const sent = await convertToModelMessages(await validateUIMessages({ messages }));
sent.forEach(message => modelMessageSchema.parse(message));
const text = content => (typeof content === 'string' ? content : content.map(part => part.text ?? '').join(''));
process.stdout.write(JSON.stringify(sent.map(message => text(message.content))));
